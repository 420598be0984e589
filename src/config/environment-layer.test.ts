import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';

import { environmentLayer, variableOf } from './environment-layer.ts';
import { schema } from './schema.ts';
import { settingsOf } from './setting.ts';

const settings = settingsOf(schema);

const read = (env: NodeJS.ProcessEnv): ReturnType<typeof environmentLayer> => environmentLayer(env, settings);

test('no two keys share a variable', () => {
  const variables = [...settings.keys()].map(variableOf);
  assert.equal(new Set(variables).size, variables.length);
});

test('every key is set by the variable named after its path', () => {
  for (const path of settings.keys())
    assert.deepEqual(
      read({ [variableOf(path)]: 'x' }).entries.map((entry) => [entry.path, entry.source]),
      [[path, variableOf(path)]],
    );
});

test('a variable is read by the type of its key', () => {
  const { entries } = read({
    SERVER_PORT: '8081',
    SERVER_ALLOW_UNAUTHENTICATED: 'true',
    KAFKA_BROKERS: 'a:1, b:2',
    DATABASE_PASSWORD: '123',
    DLQ_ORIGINAL_TOPIC_RULES: '[{"match":"*.failed","topic":"*"}]',
  });
  assert.deepEqual(Object.fromEntries(entries.map(({ path, value }) => [path, value])), {
    'server.port': 8081,
    'server.allow_unauthenticated': true,
    'kafka.brokers': ['a:1', 'b:2'],
    'database.password': '123',
    'dlq.original_topic_rules': [{ match: '*.failed', topic: '*' }],
  });
});

test('an empty variable is not set', () => {
  assert.deepEqual(read({ DATABASE_URL: '', PORT: '', KAFKA_BROKERS: '' }), {
    entries: [],
    problems: [],
    warnings: [],
  });
});

test('the name after the path comes after the common one, and so wins', () => {
  assert.deepEqual(
    read({ SERVER_PORT: '2', PORT: '1' }).entries.map(({ value }) => value),
    [1, 2],
  );
});

test('what Kubernetes sets for a Service of the same name is left alone', () => {
  const { entries, warnings } = read({
    DATABASE_PORT: 'tcp://10.0.0.1:5432',
    DATABASE_PORT_5432_TCP_ADDR: '10.0.0.1',
    DATABASE_SERVICE_HOST: '10.0.0.1',
    KAFKA_SERVICE_PORT_CLIENT: '9092',
    KAFKA_PORT: 'tcp://10.0.0.2:9092',
  });
  assert.deepEqual(entries, []);
  assert.deepEqual(warnings, ['DATABASE_PORT is ignored: it is a Kubernetes service link']);
});

test('foreign variables are passed over in silence', () => {
  const { warnings } = read({
    PATH: '/bin',
    HOME: '/',
    HOST: 'x',
    LOG_FORMAT: 'json',
    PGHOST: 'db',
    NODE_ENV: 'test',
  });
  assert.deepEqual(warnings, []);
});

test('a variable of our sections that is no key is warned of', () => {
  assert.deepEqual(read({ DATABASE_FOO: 'x', DLQ_RETENTION_DAYS: '3', DATABSE_HOST: 'x' }).warnings, [
    'DATABASE_FOO is not the name of a key',
    'DLQ_RETENTION_DAYS is not the name of a key; did you mean DLQ_ARCHIVE_RETENTION_DAYS?',
    'DATABSE_HOST is not the name of a key; did you mean DATABASE_HOST?',
  ]);
});

test('any slip behind the section is warned of with the right suggestion', () => {
  const path = fc.constantFrom(...[...settings.keys()].filter((each) => each.includes('.')).map(variableOf));
  fc.assert(
    fc.property(
      path,
      fc.nat(),
      fc.constantFrom('', 'X', '_', '7'),
      fc.boolean(),
      (variable, position, letter, replaces) => {
        const from = variable.indexOf('_') + 1;
        const index = from + (position % (variable.length - from));
        const typed =
          variable.slice(0, index) + letter + variable.slice(index + (replaces || letter === '' ? 1 : 0));
        fc.pre(
          typed !== variable && !settings.has(typed) && typed !== 'KAFKA_' && !typed.includes('_SERVICE_'),
        );
        const [warning, ...more] = read({ [typed]: 'x' }).warnings;
        assert.deepEqual(more, []);
        assert.match(warning ?? '', new RegExp(`^${typed} .*did you mean (.* or )?${variable}( or .*)?\\?$`));
      },
    ),
    { numRuns: 2000 },
  );
});
