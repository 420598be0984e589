import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { parse, stringify } from 'yaml';
import type { Config } from './config.ts';
import { variableOf } from './layers/environment-layer.ts';
import { readLogin } from './layers/secret.ts';
import { Type, type TSchema } from 'typebox';
import { keysIn } from './schema-keys.ts';
import { schema } from './schema.ts';
import { errorOf, folderOf, load, loadYaml, messageOf, problemOf } from '../../tests/support/test-config.ts';

function serverOf(config: Config): Extract<Config['database'], { mode: 'server' }> {
  assert(config.database.mode === 'server');
  return config.database;
}

test('nothing at all is a configuration: loopback, embedded database, no Kafka', () => {
  const { app, server, database, kafka, roles, warnings, sources } = load({});
  assert.deepEqual(app, { name: 'redrive', version: packageVersion(), tier: undefined, environment: 'dev' });
  assert.deepEqual([server.host, server.port, server.bodyLimitBytes], ['127.0.0.1', 8080, 1_048_576]);
  assert(database.mode === 'embedded');
  assert.equal(database.connMaxLifetimeMs, 300_000);
  assert.deepEqual([kafka.enabled, kafka.local, kafka.brokers], [false, false, []]);
  assert.deepEqual(roles, ['api', 'ingest', 'workers']);
  assert.deepEqual([warnings, sources], [[], {}]);
});

test('the example file names every key with its default', () => {
  const file = new URL('../../config/config.yaml', import.meta.url);
  const written = (node: TSchema): unknown =>
    Type.IsObject(node)
      ? Object.fromEntries(Object.entries(node.properties).map(([key, each]) => [key, written(each)]))
      : ((node as { default?: unknown }).default ?? null);
  assert.deepEqual(parse(readFileSync(file, 'utf8')), written(schema));
  const { sources: _, ...config } = load({ argv: { configPath: file.pathname } });
  const { sources: __, ...defaults } = load({});
  assert.deepEqual(config, defaults);
});

test('the file of the dlq database as it was written starts', () => {
  const config = loadYaml(fixture('dlq-database.yaml'), { SERVER_ALLOW_UNAUTHENTICATED: 'true' });
  assert.deepEqual(config.app, { name: 'dlq-manager', version: '1.0.0', tier: 'system', environment: 'dev' });
  const { host, name, user, password, maxOpenConns, maxIdleConns } = serverOf(config);
  assert.deepEqual(
    [host, name, user, password.reveal(), maxOpenConns, maxIdleConns],
    ['postgres.k1s0-system.svc.cluster.local', 'dlq_db', 'app', '', 10, 3],
  );
  assert.equal(config.kafka.enabled, false);
  assert.deepEqual(config.warnings, []);
});

test('the file of the saga server as it was written starts', () => {
  const config = loadYaml(fixture('saga-server.yaml'));
  assert.deepEqual(config.app, { name: 'saga-server', version: '0.1.0', tier: 'system', environment: 'dev' });
  const { host, port, name, user, maxOpenConns, maxIdleConns, connMaxLifetimeMs } = serverOf(config);
  assert.deepEqual(
    [host, port, name, user, maxOpenConns, maxIdleConns, connMaxLifetimeMs],
    ['postgres.k1s0-system.svc.cluster.local', 5432, 'k1s0_system', 'app', 25, 5, 300_000],
  );
  assert.deepEqual(config.warnings, []);
});

test('the file of the dlq server as it was written starts, once others are let in explicitly', () => {
  const text = fixture('dlq-manager-server.yaml');
  const config = loadYaml(text, { SERVER_ALLOW_UNAUTHENTICATED: 'true' });
  assert.deepEqual([config.server.host, config.server.port], ['0.0.0.0', 8080]);
  assert.equal(config.kafka.enabled, true);
  assert.deepEqual(config.kafka.brokers, ['kafka-0.messaging.svc.cluster.local:9092']);
  assert.deepEqual(config.kafka.dlqTopicPattern, ['*.dlq.v1']);
  assert.equal(serverOf(config).name, 'k1s0_dlq');
  assert.match(
    config.warnings.join('\n'),
    /^server\.allow_unauthenticated is true and server\.host is 0\.0\.0\.0: /,
  );

  const problem = problemOf(() => loadYaml(text));
  assert.equal(problem.path, 'server.host');
  assert.match(problem.reason, /set server\.allow_unauthenticated to true/);
});

test('each layer overrides the ones before it, and options override all', () => {
  const files = {
    'config.yaml':
      'app: {environment: prod}\nauth: {mode: none}\nserver: {port: 1}\ndatabase: {host: base, user: base, password: base}\n',
    'config.prod.yaml': 'database: {user: second, password: second}\nserver: {port: 2}\n',
    'config.dev.yaml': 'server: {port: 666}\n',
  };
  const secrets = { 'db-password': 'from-file\n' };
  const secret = serverOf(load({ files, secrets }));
  assert.deepEqual([secret.host, secret.user, secret.password.reveal()], ['base', 'second', 'from-file']);
  const config = load({
    files,
    secrets,
    env: { DATABASE_PASSWORD: 'from-env', SERVER_PORT: '3' },
    argv: { port: '4' },
  });
  assert.equal(serverOf(config).password.reveal(), 'from-env');
  assert.equal(config.server.port, 4);
  assert.equal(config.sources['server.port'], '--port');
  assert.equal(config.sources['database.password'], 'DATABASE_PASSWORD');
});

test('APP_ENVIRONMENT chooses the second file', () => {
  const files = { 'config.yaml': 'app: {environment: dev}', 'config.test.yaml': 'server: {port: 7}' };
  const config = load({ files, env: { APP_ENVIRONMENT: 'test' } });
  assert.deepEqual([config.app.environment, config.server.port], ['test', 7]);
});

test('the second file does not rename the environment that chose it', () => {
  const files = { 'config.yaml': '', 'config.dev.yaml': 'app: {environment: prod}' };
  assert.equal(problemOf(() => load({ files })).path, 'app.environment');
  assert.equal(
    load({ files: { ...files, 'config.dev.yaml': 'app: {environment: dev}' } }).app.environment,
    'dev',
  );
});

test('an environment is never a way to another folder', () => {
  const folder = folderOf({ 'config.yaml': '' });
  mkdirSync(join(folder, 'config.x'));
  writeFileSync(join(folder, 'stolen.yaml'), 'read: true');
  const env = { CONFIG_PATH: join(folder, 'config.yaml'), APP_ENVIRONMENT: 'x/../stolen' };
  assert.equal(problemOf(() => load({ env })).source, 'APP_ENVIRONMENT');
});

test('maps merge, lists replace, null goes back to the default', () => {
  const { kafka, dlq, database } = load({
    files: {
      'config.yaml': `
        kafka: {brokers: [a:1, b:2], consumer_group: mine, sasl: {mechanism: PLAIN}}
        dlq: {max_retries: 9, archive: {retention_days: 9, purge_days: 99}}
        database: {url: "postgres://db/x"}`,
      'config.dev.yaml': `
        kafka: {brokers: [c:3], consumer_group: null}
        dlq: {archive: null}
        database: {url: null}`,
    },
  });
  assert.deepEqual([kafka.brokers, kafka.consumerGroup], [['c:3'], 'dlq-manager.default']);
  assert.deepEqual([dlq.maxRetries, dlq.archive.retentionDays, dlq.archive.purgeDays], [9, 30, 365]);
  assert.equal(database.mode, 'embedded');
});

test('only a file that is named is read, and it must be there', () => {
  const folder = folderOf({ 'config.yaml': 'server: {port: 7}' });
  const named = load({ env: { CONFIG_PATH: join(folder, 'config.yaml') } });
  assert.equal(named.server.port, 7);
  const missing = join(folder, 'missing.yaml');
  assert.deepEqual(
    problemOf(() => load({ env: { CONFIG_PATH: missing } })),
    { path: missing, reason: 'no such file' },
  );
  assert.match(problemOf(() => load({ argv: { configPath: folder } })).reason, /cannot be read: EISDIR/);
});

test('DATABASE_URL alone names a server', () => {
  const config = load({ env: { DATABASE_URL: 'postgres://me:p%40ss%2F@db:6432/orders?sslmode=require' } });
  const { host, port, name, user, password, sslMode } = serverOf(config);
  assert.deepEqual(
    [host, port, name, user, password.reveal(), sslMode],
    ['db', 6432, 'orders', 'me', 'p@ss/', 'require'],
  );
});

test('a part of the connection comes from the URL unless its own key is in the same layer or a later one', () => {
  const files = { 'config.yaml': 'database: {host: base, port: 1, user: base, password: base}' };
  const secrets = { 'db-password': 'from-file' };
  const named = serverOf(
    load({ files, secrets, env: { DATABASE_URL: 'postgres://db/x', DATABASE_NAME: 'y' } }),
  );
  assert.deepEqual([named.host, named.port, named.name, named.user], ['db', 5432, 'y', 'base']);
  assert.equal(named.password.reveal(), 'from-file');
  const url = { 'config.yaml': 'database: {url: "postgres://me:pw@db/x"}' };
  const filed = serverOf(load({ files: url, secrets }));
  assert.deepEqual([filed.user, filed.password.reveal()], ['me', 'from-file']);
  assert(filed.passwordFile?.endsWith('db-password'));
  const full = serverOf(load({ secrets, env: { DATABASE_URL: 'postgres://me:pw@db/x' } }));
  assert.deepEqual([full.password.reveal(), full.passwordFile], ['pw', undefined]);
});

test('a direct URL takes what it leaves out from the other connections', () => {
  const { direct } = serverOf(
    load({
      secrets: { 'db-password': 'pw' },
      env: {
        DATABASE_URL: 'postgres://me@pooler:6432/x?sslmode=require',
        DATABASE_DIRECT_URL: 'postgres://db',
      },
    }),
  );
  assert(direct);
  const { host, port, name, user, sslMode } = direct;
  assert.deepEqual([host, port, name, user, sslMode], ['db', 5432, 'x', 'me', 'require']);
  assert(direct.passwordFile?.endsWith('db-password'));
});

test('credentials from files are known by their files, to be read again', async () => {
  const secrets = {
    'db-username': 'v-1',
    'db-password': 'one',
    'kafka-sasl-username': 'k',
    'kafka-sasl-password': 'kp',
  };
  const config = load({
    secrets,
    env: { DATABASE_HOST: 'db', KAFKA_BROKERS: 'a:1', KAFKA_SECURITY_PROTOCOL: 'sasl_plaintext' },
  });
  const { user, userFile, password, passwordFile } = serverOf(config);
  assert.deepEqual([user, password.reveal()], ['v-1', 'one']);
  assert(userFile !== undefined && passwordFile !== undefined);
  writeFileSync(passwordFile, 'two\n');
  assert.deepEqual(await readLogin(serverOf(config)), { user: 'v-1', password: 'two' });
  const { sasl } = config.kafka;
  assert.deepEqual([sasl?.mechanism, sasl?.user, sasl?.password.reveal()], ['SCRAM-SHA-512', 'k', 'kp']);
  assert(sasl?.passwordFile?.endsWith('kafka-sasl-password'));
});

test('whoever names a user but no host is not given the embedded database', () => {
  assert.deepEqual(
    problemOf(() => load({ env: { DATABASE_USER: 'me' } })),
    {
      path: 'database.host',
      reason: 'is missing, but database.user is set',
      source: 'DATABASE_USER',
    },
  );
  assert.equal(problemOf(() => load({ secrets: { 'db-password': 'pw' } })).path, 'database.host');
});

test('rules between keys name both', () => {
  const cases: readonly (readonly [NodeJS.ProcessEnv, string, RegExp])[] = [
    [{ SERVER_HOST: '0.0.0.0' }, 'server.host', /server\.allow_unauthenticated/],
    [{ DLQ_RETRY_LEASE: '5s' }, 'dlq.retry_lease', /longer than kafka\.publish_timeout/],
    [{ KAFKA_PUBLISH_TIMEOUT: '31s' }, 'dlq.retry_lease', /longer than kafka\.publish_timeout/],
    [{ DLQ_ARCHIVE_PURGE_DAYS: '29' }, 'dlq.archive.purge_days', /dlq\.archive\.retention_days/],
    [{ KAFKA_ENABLED: 'true' }, 'kafka.brokers', /kafka\.enabled/],
    [{ KAFKA_LOCAL: 'true', KAFKA_BROKERS: 'a:1' }, 'kafka.local', /kafka\.brokers/],
    [{ KAFKA_SECURITY_PROTOCOL: 'SASL_SSL', KAFKA_SASL_USERNAME: 'a' }, 'kafka.sasl.password', /is missing/],
    [{ KAFKA_SECURITY_PROTOCOL: 'SSL', KAFKA_TLS_CA: '/nowhere.pem' }, 'kafka.tls.ca', /ENOENT/],
    [{ DATABASE_URL: 'postgres://db/x?sslmode=prefer' }, 'database.url', /sslmode must be one of/],
    [{ DATABASE_URL: 'db.example.com' }, 'database.url', /must be postgres:/],
    [{ DATABASE_HOST: 'db', DATABASE_DIRECT_URL: 'nonsense' }, 'database.direct_url', /must be postgres:/],
    [{ DATABASE_HOST: 'db', DATABASE_SSL_ROOT_CERT: '/nowhere.pem' }, 'database.ssl_root_cert', /ENOENT/],
  ];
  for (const [env, path, reason] of cases) {
    const problem = problemOf(() => load({ env }));
    assert.equal(problem.path, path, inspect(env));
    assert.match(problem.reason, reason);
  }
});

test('a certificate needs its key, and the key its certificate', () => {
  const file = join(folderOf({ 'some.pem': 'x' }), 'some.pem');
  const env = { KAFKA_BROKERS: 'a:1', KAFKA_SECURITY_PROTOCOL: 'SSL' };
  assert.equal(problemOf(() => load({ env: { ...env, KAFKA_TLS_CERT: file } })).path, 'kafka.tls.key');
  assert.equal(problemOf(() => load({ env: { ...env, KAFKA_TLS_KEY: file } })).path, 'kafka.tls.cert');
  const { tls } = load({ env: { ...env, KAFKA_TLS_CERT: file, KAFKA_TLS_KEY: file } }).kafka;
  assert.deepEqual(tls, { ca: undefined, cert: file, key: file });
});

test('a rule says nothing about a value that is wrong by itself', () => {
  const env = { DLQ_RETRY_LEASE: '30', KAFKA_PUBLISH_TIMEOUT: '40s' };
  assert.match(problemOf(() => load({ env })).reason, /unit is missing/);
});

test('Kafka is enabled by brokers or by the local one, and can be switched off', () => {
  assert.equal(load({ env: { KAFKA_BROKERS: 'a:1' } }).kafka.enabled, true);
  assert.equal(load({ env: { KAFKA_LOCAL: '1' } }).kafka.enabled, true);
  assert.equal(load({ env: { KAFKA_BROKERS: 'a:1', KAFKA_ENABLED: 'false' } }).kafka.enabled, false);
});

test('credentials that the protocol does not use are warned of', () => {
  const { kafka, warnings } = load({
    secrets: { 'kafka-sasl-password': 'pw' },
    env: { KAFKA_BROKERS: 'a:1' },
  });
  assert.equal(kafka.sasl, undefined);
  assert.deepEqual(warnings, ['kafka.sasl.password is not used: kafka.security_protocol is PLAINTEXT']);
});

test('more idle connections than connections are as many as there are', () => {
  assert.equal(load({ env: { DATABASE_MAX_OPEN_CONNS: '3' } }).database.maxIdleConns, 3);
});

test('all problems are told at once, one in a line, each with its source', () => {
  const folder = folderOf({
    'config.yaml': 'databse: {}\nserver:\n  port: "80"\n  prot: 1\ndlq: {max_retries: 0}\n',
  });
  const file = join(folder, 'config.yaml');
  const error = errorOf(() => load({ argv: { configPath: file }, env: { LOG_LEVEL: 'inof', PORT: 'x' } }));
  assert.deepEqual(error.message.split('\n'), [
    'the configuration has 5 problems:',
    `  databse: unknown key (${file}:1); did you mean database?`,
    `  server.prot: unknown key (${file}:4); did you mean server.port?`,
    '  server.port: must be a whole number from 0 to 65535, not text (PORT)',
    `  dlq.max_retries: must be a whole number from 1 to 1000 (${file}:5)`,
    '  telemetry.log_level: must be one of trace, debug, info, warn, error, fatal, silent (LOG_LEVEL); did you mean info?',
  ]);
});

test('no message repeats a value, whatever key it stands in', () => {
  const marker = 'hunter2';
  const urls = [`${marker}:x@y`, `postgres://u:${marker}#@db`, `postgres://db/x?${marker}=1`];
  const values = [marker, ...urls, [marker], [[marker]], { a: marker }, [{ match: marker }]];
  const configPath = join(folderOf({}), 'marked.yaml');
  for (const { keys, path, value } of keysIn(schema).flatMap((key) =>
    values.map((value) => ({ ...key, value })),
  )) {
    writeFileSync(
      configPath,
      stringify(keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value)),
    );
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const variable = variableOf(path);
    for (const options of [
      { argv: { configPath } },
      { env: { [variable]: text } },
      { env: { [`${variable}_FILE`]: text } },
    ])
      assert(!messageOf(() => load(options)).includes(marker), `${path}: ${inspect(value)}`);
  }
});

test('a configuration shows none of its secrets', () => {
  const config = load({
    env: {
      DATABASE_URL: 'postgres://u:hunter2@db/x',
      DATABASE_DIRECT_URL: 'postgres://u:hunter2@db/x',
      KAFKA_BROKERS: 'a:1',
      KAFKA_SECURITY_PROTOCOL: 'SASL_PLAINTEXT',
      KAFKA_SASL_USERNAME: 'k',
      KAFKA_SASL_PASSWORD: 'hunter2',
    },
  });
  const shown = `${JSON.stringify(config)} ${inspect(config, { depth: null, showHidden: true })}`;
  assert(!shown.includes('hunter2'));
  assert(shown.includes('[redacted]'));
});

test('a configuration is frozen throughout', () => {
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    assert(Object.isFrozen(value), inspect(value));
    Object.values(value).forEach(visit);
  };
  visit(loadYaml(fixture('dlq-manager-server.yaml'), { SERVER_ALLOW_UNAUTHENTICATED: 'true' }));
  visit(load({}));
});

const fixture = (name: string): string => readFileSync(new URL(`fixtures/${name}`, import.meta.url), 'utf8');

function packageVersion(): unknown {
  return parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}
