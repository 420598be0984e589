import assert from 'node:assert/strict';
import { test } from 'node:test';
import { join } from 'node:path';
import { folderOf, load, messageOf, problemOf, problemsOf } from '../../../tests/support/test-config.ts';
import type { Config } from '../config.ts';

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

const secretFiles = folderOf({
  user: 'v-1\n',
  password: ' one \n',
  lines: 'one\n\n',
  'login.json': vaultAnswer,
  'half.json': '{"username": "v-1", "pass',
  url: 'postgres://me:pw@db.example.com/x\n',
  'empty file': '\n',
});
const pathOf = (name: string): string => join(secretFiles, name);

function targetOf(config: Config) {
  assert(config.database.mode === 'server');
  const { host, user, userFile, password, passwordFile } = config.database;
  return { host, user, userFile, password: password.reveal(), passwordFile };
}

/** As in a configuration file. */
const named = (files: Readonly<Record<string, string>>, more = ''): Record<string, string> => ({
  'config.yaml': `database: {host: db}\nsecrets: {files: ${JSON.stringify(files)}}\n${more}`,
});

const fromUserAndPassword = {
  host: 'db',
  user: 'v-1',
  userFile: pathOf('user'),
  password: ' one ',
  passwordFile: pathOf('password'),
};

test('variables with the suffix _FILE name the files of secrets, of which one newline is cut', () => {
  const config = load({
    env: { ...env, DATABASE_USER_FILE: pathOf('user'), DATABASE_PASSWORD_FILE: pathOf('password') },
  });
  assert.deepEqual(targetOf(config), fromUserAndPassword);
  assert.deepEqual(config.secretFiles, [pathOf('user'), pathOf('password')]);
  assert.deepEqual(config.warnings, []);
  const lines = problemOf(() => load({ env: { ...env, DATABASE_PASSWORD_FILE: pathOf('lines') } }));
  assert.equal(lines.reason, 'must be text without control characters');
  const byUrl = targetOf(load({ env: { DATABASE_URL_FILE: pathOf('url') } }));
  assert.deepEqual([byUrl.host, byUrl.user, byUrl.password], ['db.example.com', 'me', 'pw']);
});

test('secrets.files names the files of secrets, and overrides the folder of the agent', () => {
  const files = named({ 'database.user': pathOf('user'), 'database.password': pathOf('password') });
  assert.deepEqual(targetOf(load({ files, secrets: { 'db-creds': vaultAnswer } })), fromUserAndPassword);
  const env = { DATABASE_PASSWORD_FILE: pathOf('login.json') };
  assert.equal(targetOf(load({ files, env })).password, 'one');
});

test('one file that is named for user and password holds both', () => {
  const file = pathOf('login.json');
  const login = { host: 'db', user: 'v-1', userFile: file, password: 'one', passwordFile: file };
  for (const given of [
    { env: { ...env, DATABASE_USER_FILE: file, DATABASE_PASSWORD_FILE: file } },
    { files: named({ 'database.user': file, 'database.password': file }) },
    { files: named({ 'database.user': file }), env: { DATABASE_PASSWORD_FILE: file } },
  ])
    assert.deepEqual(targetOf(load(given)), login);
  const half = pathOf('half.json');
  const { path, reason } = problemOf(() =>
    load({ env: { ...env, DATABASE_USER_FILE: half, DATABASE_PASSWORD_FILE: half } }),
  );
  assert.deepEqual(
    [path, reason],
    ['database.user', 'must hold JSON like {"username": "…", "password": "…"}'],
  );
});

test('user and password of Kafka come from one file', () => {
  const kafka = { KAFKA_BROKERS: 'a:1', KAFKA_SECURITY_PROTOCOL: 'SASL_PLAINTEXT' };
  const loginOfKafka = ({ kafka: { sasl } }: Config) => [sasl?.user, sasl?.password.reveal()];
  const secrets = { 'kafka-sasl-username': 'old', 'kafka-sasl.json': vaultAnswer };
  const config = load({ secrets, env: kafka });
  assert.deepEqual(loginOfKafka(config), ['v-1', 'one']);
  assert.equal(config.kafka.sasl?.userFile, config.kafka.sasl?.passwordFile);
  const file = pathOf('login.json');
  const env = { ...kafka, KAFKA_SASL_USERNAME_FILE: file, KAFKA_SASL_PASSWORD_FILE: file };
  assert.deepEqual(loginOfKafka(load({ env })), ['v-1', 'one']);
  const half = { 'kafka-sasl.json': '{"username": "k"}' };
  assert.match(
    messageOf(() => load({ secrets: half, env: kafka })),
    /kafka\.sasl\.username: must hold JSON like/,
  );
  const both = {
    ...kafka,
    KAFKA_SASL_USERNAME_FILE: pathOf('half.json'),
    KAFKA_SASL_PASSWORD_FILE: pathOf('half.json'),
  };
  assert.match(
    messageOf(() => load({ env: both })),
    /kafka\.sasl\.username: must hold JSON like/,
  );
});

test('a named file that is missing, unreadable or empty is a problem that says who named it', () => {
  for (const [name, reason] of [
    ['missing', 'the secret file cannot be read: ENOENT'],
    ['user/x', 'the secret file cannot be read: ENOTDIR'],
    ['.', 'the secret file cannot be read: EISDIR'],
    ['empty file', 'the secret file is empty'],
  ] as const) {
    const file = pathOf(name);
    assert.deepEqual(
      problemOf(() => load({ env: { ...env, DATABASE_PASSWORD_FILE: file } })),
      { path: 'database.password', reason, source: `${file}, named by DATABASE_PASSWORD_FILE` },
    );
    const inYaml = problemOf(() => load({ files: named({ 'database.password': file }) }));
    assert.deepEqual([inYaml.path, inYaml.reason], ['database.password', reason]);
    assert.match(inYaml.source ?? '', /, named by .*config\.yaml:2$/);
  }
});

test('secrets.files refuses keys that are no secrets, and values that are no paths', () => {
  const files = named({ 'databse.password': '/x', 'server.port': '/x' });
  assert.deepEqual(
    problemsOf(() => load({ files })).map(({ path, suggestion }) => [path, suggestion]),
    [
      ['secrets.files["databse.password"]', 'secrets.files["database.password"]'],
      ['secrets.files["server.port"]', undefined],
    ],
  );
  const wrong = { 'config.yaml': 'secrets: {files: {database.password: 5, database.user: ""}}' };
  assert.deepEqual(
    problemsOf(() => load({ files: wrong })).map(({ path }) => path),
    ['secrets.files["database.user"]', 'secrets.files["database.password"]'],
  );
});

test('a secret that is set by its variable and by its file is a problem', () => {
  const both = { ...env, DATABASE_PASSWORD: 'x', DATABASE_PASSWORD_FILE: pathOf('password') };
  assert.deepEqual(
    problemOf(() => load({ env: both })),
    {
      path: 'database.password',
      reason: 'is set twice: unset one of the two variables',
      source: 'DATABASE_PASSWORD, DATABASE_PASSWORD_FILE',
    },
  );
  assert.equal(
    messageOf(() => load({ env: { ...both, DATABASE_PASSWORD: '' } })),
    '',
  );
  const header = 'OUTBOX_DESTINATIONS_BROKER_HEADERS_X_KEY';
  const destinations = {
    broker: { type: 'http', idempotency: 'none', url: 'http://a', headers: { 'X-Key': 'a' } },
  };
  const { path } = problemOf(() =>
    load({
      files: { 'config.yaml': JSON.stringify({ outbox: { destinations } }) },
      env: { [header]: 'b', [`${header}_FILE`]: pathOf('user') },
    }),
  );
  assert.equal(path, 'outbox.destinations.broker.headers.X-Key');
});

test('a named file overrides a configuration file with a warning, and what is not used is not warned of', () => {
  const files = { 'config.yaml': 'database: {host: db, password: from-yaml}' };
  const fileEnv = { DATABASE_PASSWORD_FILE: pathOf('password') };
  assert.match(
    messageOf(() => load({ files, env: fileEnv })),
    /^database\.password is in .*config\.yaml.* and in .*password: the secret file is used$/,
  );
  const secrets = { 'db-password': 'x' };
  assert.equal(
    messageOf(() => load({ files, secrets, env: { DATABASE_PASSWORD: 'y' } })),
    '',
  );
});

test('a variable with the suffix _FILE that names no secret is warned of', () => {
  assert.equal(
    messageOf(() => load({ env: { ...env, DATABASE_PASWORD_FILE: '/x' } })),
    'DATABASE_PASWORD_FILE is not the name of a key; did you mean DATABASE_PASSWORD_FILE?',
  );
});
