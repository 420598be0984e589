import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigError } from '../config-error.ts';
import { loadConfig } from '../config.ts';

const jwt = { issuer: 'https://idp.example.com/realms/main', audience: 'redrive' };

function load(tree: object) {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-config-'));
  try {
    const configPath = join(folder, 'config.yaml');
    writeFileSync(configPath, JSON.stringify(tree));
    return loadConfig({ argv: { configPath }, env: {}, secretsDir: '/nonexistent' });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function problemOf(tree: object): string {
  try {
    load(tree);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems.map(({ path, reason }) => `${path} ${reason}`).join('\n');
  }
  return 'none';
}

test('nothing configured is local, and mode none is open to all', () => {
  assert.equal(load({}).auth.mode, 'local');
  const open = load({ server: { host: '0.0.0.0' }, auth: { mode: 'none' } });
  assert.deepEqual([open.auth.mode, open.server.allowUnauthenticated], ['none', true]);
  assert.match(open.warnings.join(), /^auth\.mode is none and server\.host is 0\.0\.0\.0: everyone/);
  assert.equal(load({ server: { allow_unauthenticated: true } }).auth.mode, 'none');
});

test('with an issuer the server may be reached by others', () => {
  const config = load({ server: { host: '0.0.0.0' }, app: { environment: 'production' }, auth: { jwt } });
  assert.equal(config.auth.mode, 'required');
  assert.deepEqual(config.warnings, []);
  assert.deepEqual(config.auth.jwt, {
    ...jwt,
    rolesClaim: 'roles',
    nameClaim: 'preferred_username',
    requiredType: null,
  });
});

test('roles and bindings are read with their scopes', () => {
  const { auth } = load({
    auth: {
      jwt,
      roles: { payments: { extends: 'sys_operator', topics: ['payments.*'] } },
      bindings: [{ role: 'payments', subjects: ['role:oncall'], queues: ['mail'] }],
    },
  });
  assert.deepEqual(auth.roles, [
    ['payments', { extends: 'sys_operator', permissions: [], scope: { topics: ['payments.*'] } }],
  ]);
  assert.deepEqual(auth.bindings, [
    { role: 'payments', subjects: ['role:oncall'], scope: { queues: ['mail'] } },
  ]);
});

const server = { public_url: 'https://redrive.example.com/' };
const oidc = { issuer: jwt.issuer, client_id: 'redrive-console' };
const keys = 'k'.repeat(32);

test('with a provider people log in, and it alone is authentication too', () => {
  const { auth } = load({
    server: { ...server, host: '0.0.0.0' },
    app: { environment: 'production' },
    auth: { oidc, session: { keys: `${keys}\n${'n'.repeat(40)}` } },
  });
  assert.deepEqual([auth.mode, auth.jwt, auth.cli], ['required', null, null]);
  assert.equal(auth.oidc?.publicUrl, 'https://redrive.example.com');
  assert.deepEqual(auth.oidc?.scopes, ['openid', 'profile']);
  assert.deepEqual([auth.oidc?.session.idleMs, auth.oidc?.session.absoluteMs], [1_800_000, 43_200_000]);
  assert.equal(load({ auth: { jwt, cli: { client_id: 'cli' } } }).auth.cli?.clientId, 'cli');
  const local = { public_url: 'http://127.0.0.1:8080' };
  const other = { ...oidc, client_id: 'redrive' };
  const typed = load({ server: local, auth: { oidc: other, jwt: { ...jwt, require_typ: 'at+jwt' } } });
  assert.equal(typed.auth.oidc?.session.keys, null);
});

test('a login that would protect less than it seems is refused', () => {
  const production = { environment: 'production' };
  const session = { keys };
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ auth: { oidc } }, /^server\.public_url is missing: auth\.oidc needs it/],
    [
      { server: { public_url: 'http://redrive.example.com' }, auth: { oidc } },
      /without TLS others could read/,
    ],
    [{ server, auth: { oidc: { issuer: oidc.issuer } } }, /^auth\.oidc\.client_id is missing/],
    [{ server, auth: { oidc: { client_id: 'x' } } }, /^auth\.oidc\.issuer is missing/],
    [
      { server, auth: { oidc: { ...oidc, issuer: 'http://idp.example.com' } } },
      /^auth\.oidc\.issuer must be/,
    ],
    [
      { app: production, server, auth: { oidc: { ...oidc, issuer: 'http://127.0.0.1:1' }, session } },
      /^auth\.oidc\.issuer must be an https/,
    ],
    [{ app: production, server, auth: { oidc } }, /^auth\.session\.keys is missing/],
    [
      { server, auth: { oidc, session: { keys: 'short' } } },
      /^auth\.session\.keys must be 1 to 10 keys of 32/,
    ],
    [{ server, auth: { oidc, session: { keys: '' } } }, /^auth\.session\.keys must be more than nothing/],
    [{ server, auth: { oidc, session: { keys: `${keys} short` } } }, /^auth\.session\.keys must be/],
    [
      { server, auth: { oidc, session: { idle: '2h', absolute: '1h' } } },
      /^auth\.session\.idle must not be longer/,
    ],
    [
      { server, auth: { jwt, oidc: { ...oidc, client_id: jwt.audience } } },
      /^auth\.jwt\.audience must not be auth\.oidc\.client_id/,
    ],
    [{ server, auth: { oidc, mode: 'none' } }, /^auth\.mode cannot be combined with auth\.oidc/],
    [{ auth: { cli: { client_id: 'cli' } } }, /^auth\.cli\.client_id requires auth\.jwt/],
  ];
  for (const [tree, expected] of cases) assert.match(problemOf(tree), expected, JSON.stringify(tree));
});

test('what would protect less than it seems is refused', () => {
  const { issuer, audience } = jwt;
  const role = (one: object) => ({ auth: { jwt, roles: { mine: one } } });
  const cases: readonly (readonly [object, RegExp])[] = [
    [{ server: { host: '0.0.0.0' } }, /^server\.host lets others in without authentication/],
    [{ app: { environment: 'production' } }, /^app\.environment production requires authentication/],
    [{ app: { environment: 'prod' } }, /requires authentication/],
    [{ auth: { jwt: { issuer } } }, /^auth\.jwt\.audience is missing/],
    [{ auth: { jwt: { audience } } }, /^auth\.jwt\.issuer is missing/],
    [{ auth: { jwt: { issuer: 'http://idp.example.com', audience } } }, /must be an https:\/\/ URL/],
    [
      { app: { environment: 'prod' }, auth: { jwt: { issuer: 'http://127.0.0.1:1', audience } } },
      /must be an https:\/\/ URL/,
    ],
    [{ auth: { jwt: { issuer: `${issuer}?a=b`, audience } } }, /^auth\.jwt\.issuer must be/],
    [{ auth: { jwt: { issuer: 'https://u:p@idp.example.com', audience } } }, /^auth\.jwt\.issuer must be/],
    [{ auth: { jwt, mode: 'none' } }, /^auth\.mode cannot be combined with auth\.jwt/],
    [{ auth: { jwt }, server: { allow_unauthenticated: true } }, /^server\.allow_unauthenticated cannot be/],
    [{ auth: { api_keys: { enabled: true } } }, /^auth\.api_keys\.enabled requires auth\.jwt or auth\.oidc/],
    [role({ extends: 'sys_operater' }), /^auth\.roles\.mine\.extends .* did you mean sys_operator\?/],
    [role({ extends: 'mine' }), /must not lead back to the same role/],
    [role({ topics: ['a'] }), /^auth\.roles\.mine gives nothing/],
    [role({ permissions: ['dlq:messages:explode'] }), /must be a permission/],
    [role({ extends: 'sys_admin', topics: [] }), /^auth\.roles\.mine\.topics/],
    [role({ extends: 'sys_admin', topics: ['a?'] }), /^auth\.roles\.mine\.topics/],
    [{ auth: { jwt, roles: { sys_admin: { extends: 'worker' } } } }, /is a built-in role/],
    [
      { auth: { jwt, bindings: [{ role: 'nobody', subjects: ['role:x'] }] } },
      /^auth\.bindings\[0\]\.role is/,
    ],
    [{ auth: { jwt, bindings: [{ role: 'worker', subjects: ['ada@example.com'] }] } }, /subjects/],
    [{ auth: { jwt, bindings: [{ role: 'worker', subjects: [] }] } }, /subjects/],
  ];
  for (const [tree, expected] of cases) assert.match(problemOf(tree), expected, JSON.stringify(tree));
});
