import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load, messageOf, problemOf } from '../../../tests/support/test-config.ts';

const env = { DATABASE_HOST: 'db' };
const vaultAnswer = '{"username": "v-1", "password": "one"}\n';

function loginOf(secrets: Readonly<Record<string, string>>) {
  const { database } = load({ secrets, env });
  assert(database.mode === 'server');
  const { user, userFile, password, passwordFile } = database;
  return { user, password: password.reveal(), sameFile: userFile !== undefined && userFile === passwordFile };
}

test('user and password come from one file, as Vault names them or not', () => {
  const expected = { user: 'v-1', password: 'one', sameFile: true };
  assert.deepEqual(loginOf({ 'db-creds': vaultAnswer }), expected);
  assert.deepEqual(loginOf({ 'database.json': '{"user": "v-1", "password": "one"}' }), expected);
});

test('a file with both overrides files with one of them', () => {
  const { user, password } = loginOf({ 'db-username': 'old', 'db-password': 'old', 'db-creds': vaultAnswer });
  assert.deepEqual([user, password], ['v-1', 'one']);
});

test('a file with both that is half written or lacks one is a problem', () => {
  for (const text of [
    '',
    '{"username": "v',
    '[]',
    '{"username": "v-1"}',
    '{"username": "", "password": "x"}',
  ]) {
    const { path, reason } = problemOf(() => load({ secrets: { 'database.json': text }, env }));
    assert.deepEqual(
      [path, reason],
      ['database.user', 'must hold JSON like {"username": "…", "password": "…"}'],
    );
  }
});

test('a password that is in a secret file and in a configuration file is a warning, and the secret file counts', () => {
  const yaml = (password: string): string => `database: {host: db, password: ${JSON.stringify(password)}}`;
  const secrets = { 'db-password': 'from-file\n' };
  const said = messageOf(() => load({ files: { 'config.yaml': yaml('from-yaml') }, secrets }));
  assert.match(
    said,
    /^database\.password is in .*config\.yaml.* and in .*db-password: the secret file is used$/m,
  );
  assert.doesNotMatch(said, /from-yaml|from-file/);
  // As in configuration files that leave the password to the agent.
  assert.equal(
    messageOf(() => load({ files: { 'config.yaml': yaml('') }, secrets })),
    '',
  );
});
