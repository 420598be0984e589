import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { exportSPKI, generateKeyPair, importJWK, SignJWT, UnsecuredJWT, type CryptoKey } from 'jose';
import { audience, startIssuer, type Issuer } from '../../../tests/support/issuer.ts';
import { AppError } from '../../kernel/errors.ts';
import { createIssuerKeys, type IssuerKeys } from './issuer-keys.ts';
import { verifyToken, type TokenRules } from './verify-token.ts';

let issuer: Issuer;
let rules: TokenRules;
let keys: IssuerKeys;
before(async () => {
  issuer = await startIssuer(['sys_admin', 'sys_auditor']);
  rules = {
    issuer: issuer.url,
    audience,
    rolesClaim: 'roles',
    nameClaim: 'preferred_username',
    requiredType: null,
  };
  keys = createIssuerKeys({ issuer: issuer.url, cooldownMs: 0, backoffMs: 0 });
});
after(() => issuer.stop());

const nowS = (): number => Math.floor(Date.now() / 1000);

async function codeOf(token: string | Promise<string>, more: Partial<TokenRules> = {}): Promise<string> {
  try {
    await verifyToken(keys, { ...rules, ...more }, await token);
  } catch (error) {
    assert.ok(error instanceof AppError, String(error));
    return error.code;
  }
  return 'ok';
}

test('a token that the provider issues is accepted, with its subject and roles', async () => {
  const claims = await verifyToken(keys, rules, await issuer.issue('sys_auditor'));
  assert.equal(claims.id, `${issuer.url}|sys_auditor`);
  assert.deepEqual([claims.type, claims.roles], ['service', ['sys_auditor']]);
});

test('a person has the name of the claim, and roles of a nested one', async () => {
  const token = await issuer.sign({ preferred_username: 'Ada', realm_access: { roles: ['a b', 'c,d'] } });
  const claims = await verifyToken(keys, { ...rules, rolesClaim: 'realm_access.roles' }, token);
  assert.deepEqual(
    [claims.type, claims.name, claims.roles, claims.id],
    ['user', 'Ada', ['a b', 'c,d'], `${issuer.url}|ada`],
  );
});

test('what a token is wrong about is refused', async () => {
  const cases: readonly (readonly [name: string, token: Promise<string>, code: string])[] = [
    ['the audience', issuer.sign({ aud: 'another-service' }), 'SYS_AUTH_TOKEN_INVALID'],
    ['no audience', issuer.sign({ aud: undefined }), 'SYS_AUTH_TOKEN_INVALID'],
    ['the issuer', issuer.sign({ iss: 'http://127.0.0.1:1' }), 'SYS_AUTH_TOKEN_INVALID'],
    ['no subject', issuer.sign({ sub: undefined }), 'SYS_AUTH_TOKEN_INVALID'],
    ['an empty subject', issuer.sign({ sub: '' }), 'SYS_AUTH_TOKEN_INVALID'],
    ['a long subject', issuer.sign({ sub: 'x'.repeat(300) }), 'SYS_AUTH_TOKEN_INVALID'],
    ['no end', issuer.sign({ exp: undefined }), 'SYS_AUTH_TOKEN_INVALID'],
    ['expired', issuer.sign({ exp: nowS() - 31 }), 'SYS_AUTH_TOKEN_EXPIRED'],
    ['not yet valid', issuer.sign({ nbf: nowS() + 60 }), 'SYS_AUTH_TOKEN_INVALID'],
    ['an ID token by its nonce', issuer.sign({ nonce: 'n' }), 'SYS_AUTH_TOKEN_INVALID'],
    ['an ID token by at_hash', issuer.sign({ at_hash: 'h' }), 'SYS_AUTH_TOKEN_INVALID'],
    ['an ID token by c_hash', issuer.sign({ c_hash: 'h' }), 'SYS_AUTH_TOKEN_INVALID'],
    ['an ID token by its type', issuer.sign({ typ: 'ID' }), 'SYS_AUTH_TOKEN_INVALID'],
    ['an unknown key', issuer.sign({}, { kid: 'unknown' }), 'SYS_AUTH_TOKEN_INVALID'],
    ['no token at all', Promise.resolve('x.y.z'), 'SYS_AUTH_TOKEN_INVALID'],
  ];
  for (const [name, token, code] of cases) assert.equal(await codeOf(token), code, name);
  for (const claims of [{ exp: nowS() - 25 }, { nbf: nowS() + 25 }])
    assert.equal(await codeOf(issuer.sign(claims)), 'ok', 'clocks may differ by 30 s');
});

test('a token without signature, or signed with the public key as a secret, is refused', async () => {
  const claims = { iss: issuer.url, aud: audience, sub: 'eve', exp: nowS() + 300, roles: ['sys_admin'] };
  assert.equal(await codeOf(new UnsecuredJWT(claims).encode()), 'SYS_AUTH_TOKEN_INVALID');
  const jwk = await issuer.publicKey();
  const pem = await exportSPKI((await importJWK(jwk, 'RS256')) as CryptoKey);
  for (const secret of [pem, JSON.stringify(jwk), jwk.n ?? '']) {
    const forged = new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: jwk.kid ?? '' })
      .sign(new TextEncoder().encode(secret));
    assert.equal(await codeOf(forged), 'SYS_AUTH_TOKEN_INVALID');
  }
  const [header, payload = '', signature] = (await issuer.sign()).split('.');
  const changed = Buffer.from(payload, 'base64url').toString().replace('ada', 'eve');
  const tampered = [header, Buffer.from(changed).toString('base64url'), signature].join('.');
  assert.equal(await codeOf(tampered), 'SYS_AUTH_TOKEN_INVALID');
});

test('only these algorithms are accepted, whatever the key would allow', async () => {
  for (const [alg, code] of [
    ['RS256', 'ok'],
    ['PS256', 'ok'],
    ['ES256', 'ok'],
    ['EdDSA', 'ok'],
    ['RS384', 'SYS_AUTH_TOKEN_INVALID'],
    ['RS512', 'SYS_AUTH_TOKEN_INVALID'],
    ['PS512', 'SYS_AUTH_TOKEN_INVALID'],
    ['ES384', 'SYS_AUTH_TOKEN_INVALID'],
  ] as const) {
    const { publicKey, privateKey } = await generateKeyPair(alg);
    const token = await new SignJWT({ sub: 'ada', exp: nowS() + 300 })
      .setProtectedHeader({ alg })
      .setIssuer(issuer.url)
      .setAudience(audience)
      .sign(privateKey);
    const found = await verifyToken({ keyFor: async () => publicKey }, rules, token).then(
      () => 'ok',
      (error: unknown) => (error as AppError).code,
    );
    assert.equal(found, code, alg);
  }
});

test('with require_typ only access tokens of RFC 9068 are accepted', async () => {
  const requiredType = 'at+jwt';
  assert.equal(await codeOf(issuer.issue('sys_admin'), { requiredType }), 'ok');
  assert.equal(await codeOf(issuer.sign({}, { typ: 'at+jwt' }), { requiredType }), 'ok');
  for (const token of [issuer.sign(), issuer.sign({}, { typ: 'JWT' })])
    assert.equal(await codeOf(token, { requiredType }), 'SYS_AUTH_TOKEN_INVALID');
});

test('a new signing key is found when a token with it comes; a withdrawn one is dropped by a refresh', async () => {
  const old = await issuer.sign();
  assert.equal(await codeOf(old), 'ok');
  await issuer.rotate();
  assert.equal(await codeOf(issuer.sign()), 'ok');
  await keys.refresh();
  assert.equal(await codeOf(old), 'SYS_AUTH_TOKEN_INVALID');
});

test('while the issuer is down known keys are used, and for unknown ones nobody can say', async () => {
  const known = await issuer.sign();
  const unknown = await issuer.sign({}, { kid: 'unknown' });
  assert.equal(await codeOf(known), 'ok');
  await issuer.pause();
  try {
    assert.equal(await codeOf(known), 'ok');
    assert.equal(await codeOf(unknown), 'SYS_AUTH_ISSUER_UNAVAILABLE');
    await assert.rejects(keys.refresh());
    assert.equal(await codeOf(known), 'ok', 'a failed refresh keeps the known keys');
    const fresh = createIssuerKeys({ issuer: issuer.url, backoffMs: 0 });
    await assert.rejects(verifyToken(fresh, rules, known), { code: 'SYS_AUTH_ISSUER_UNAVAILABLE' });
    await issuer.resume();
    assert.ok(await verifyToken(fresh, rules, known), 'it works once the issuer is back');
  } finally {
    await issuer.resume();
  }
});

test('many tokens with unknown keys cause one request', async () => {
  const careful = createIssuerKeys({ issuer: issuer.url });
  await verifyToken(careful, rules, await issuer.sign());
  const before = issuer.keyRequests();
  for (let i = 0; i < 20; i += 1)
    await assert.rejects(verifyToken(careful, rules, await issuer.sign({}, { kid: `unknown-${i}` })), {
      code: 'SYS_AUTH_TOKEN_INVALID',
    });
  assert.ok(issuer.keyRequests() - before <= 1, String(issuer.keyRequests() - before));
});

test('metadata that names another issuer is not trusted', async () => {
  const other = createIssuerKeys({ issuer: `${issuer.url}/`, backoffMs: 0 });
  await assert.rejects(verifyToken(other, { ...rules, issuer: `${issuer.url}/` }, await issuer.sign()), {
    code: 'SYS_AUTH_ISSUER_UNAVAILABLE',
  });
});
