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
    [{ auth: { api_keys: { enabled: true } } }, /^auth\.api_keys\.enabled requires auth\.jwt/],
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
