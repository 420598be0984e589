import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeTargets, judgeTopics } from './examine-broker.ts';
import { judgeConnections } from './examine-connections.ts';
import { judgeClock, judgeVersion } from './examine-database.ts';
import { judgeMigrations, type SchemaFacts } from './examine-schema.ts';
import type { Finding } from './finding.ts';

function assertFinding({ status, found, advice }: Finding, expected: Finding['status'], text: RegExp): void {
  assert.equal(status, expected);
  assert.match(`${found} -> ${advice ?? ''}`, text);
}

test('PostgreSQL 17 and later is ok, 15 and 16 is a warning, earlier is a problem', () => {
  assertFinding(judgeVersion(170_010, '17.10'), 'ok', /PostgreSQL 17\.10/);
  assertFinding(judgeVersion(180_000, '18.0'), 'ok', /18\.0/);
  assertFinding(judgeVersion(160_004, '16.4'), 'warning', /tested on PostgreSQL 17/);
  assertFinding(judgeVersion(140_012, '14.12'), 'problem', /use PostgreSQL 17/);
});

test('1 s of clock skew is a warning, 5 s is a problem', () => {
  assertFinding(judgeClock({ skewMs: 400, roundTripMs: 2 }), 'ok', /0\.400 s ahead/);
  assertFinding(judgeClock({ skewMs: -1500, roundTripMs: 2 }), 'warning', /1\.500 s behind .* NTP/);
  assertFinding(judgeClock({ skewMs: 6000, roundTripMs: 2 }), 'problem', /NTP/);
});

test('a slow network is not reported as clock skew', () => {
  assertFinding(judgeClock({ skewMs: 1500, roundTripMs: 2000 }), 'ok', /1\.500 s/);
});

const connections = {
  replicas: 2,
  poolSize: 25,
  extra: 1,
  maxConnections: 100,
  reserved: 3,
  others: 10,
};

test('a connection budget within the limit is ok', () => {
  assertFinding(
    judgeConnections(connections),
    'ok',
    /2 replicas with 25 \+ 1 connections need 52; PostgreSQL allows 97/,
  );
});

test('a connection budget that other applications leave no room for is a warning with the size that fits', () => {
  const finding = judgeConnections({ ...connections, others: 60 });
  assertFinding(
    finding,
    'warning',
    /lower database\.max_open_conns to 17, or raise max_connections to at least 115/,
  );
  const [, fitting] = /to (\d+), or/.exec(finding.advice ?? '') ?? [];
  const followed = judgeConnections({ ...connections, others: 60, poolSize: Number(fitting) });
  assert.equal(followed.status, 'ok');
});

test('a connection budget above max_connections is a problem', () => {
  assertFinding(judgeConnections({ ...connections, replicas: 4 }), 'problem', /need 104/);
  const full = judgeConnections({ ...connections, others: 97 });
  assert.equal(full.advice, 'raise max_connections to at least 152');
});

test('the connections beside the pool are those for LISTEN and past a pooler', () => {
  assertFinding(judgeConnections({ ...connections, extra: 0 }), 'ok', /25 connections need 50/);
  assertFinding(judgeConnections({ ...connections, extra: 3 }), 'ok', /25 \+ 3 connections need 56/);
});

const migration = (number: number, state: SchemaFacts['status'][number]['state']) => ({
  slice: 'dlq',
  number,
  name: 'add_x',
  state,
});
const schema = { appliesItself: true, canCreate: true };

test('pending migrations are a warning if the server applies them, else a problem', () => {
  const status = [migration(1, 'applied'), migration(2, 'pending')];
  assertFinding(
    judgeMigrations({ ...schema, status }),
    'warning',
    /1 of 2 pending: dlq\/2 add_x -> run `redrive migrate up`/,
  );
  assertFinding(
    judgeMigrations({ ...schema, status, appliesItself: false }),
    'problem',
    /redrive migrate up/,
  );
  assertFinding(judgeMigrations({ ...schema, status, canCreate: false }), 'problem', /GRANT CREATE/);
});

test('a changed migration is a problem, an unknown one a warning', () => {
  assertFinding(judgeMigrations({ ...schema, status: [migration(1, 'changed')] }), 'problem', /changed/);
  assertFinding(
    judgeMigrations({ ...schema, status: [migration(9, 'unknown')] }),
    'warning',
    /later version/,
  );
  assertFinding(judgeMigrations({ ...schema, status: [migration(1, 'applied')] }), 'ok', /all 1 applied/);
});

const partition = (topic: string, number: number) => ({
  topic,
  topicId: topic,
  partition: number,
  start: 0n,
  end: 0n,
  stableEnd: 0n,
  node: 1,
});

test('topics are listed with their number of partitions', () => {
  const partitions = [partition('a.dlq', 0), partition('a.dlq', 1), partition('b.dlq', 0)];
  assertFinding(
    judgeTopics({ partitions, troubles: [] }, ['*.dlq'], []),
    'ok',
    /2 match \*\.dlq.*a\.dlq \(2\), b\.dlq \(1\)/,
  );
});

test('no matching topic is a warning', () => {
  assertFinding(
    judgeTopics({ partitions: [], troubles: [] }, ['*.dlq'], []),
    'warning',
    /no topic matches \*\.dlq/,
  );
});

test('a topic without read permission is a problem', () => {
  const denied = [{ topic: 'a.dlq', partition: 0, code: 'TOPIC_AUTHORIZATION_FAILED' }];
  assertFinding(
    judgeTopics({ partitions: [partition('a.dlq', 0)], troubles: [] }, ['*.dlq'], denied),
    'problem',
    /a\.dlq\/0 TOPIC_AUTHORIZATION_FAILED -> give the user permission/,
  );
});

test('a partition without a leader is a problem', () => {
  const troubles = [
    { topic: 'a.dlq', partition: 1, code: 'LEADER_NOT_AVAILABLE', message: '', isDenied: false },
  ];
  assertFinding(
    judgeTopics({ partitions: [], troubles }, ['*.dlq'], []),
    'problem',
    /a\.dlq\/1 LEADER_NOT_AVAILABLE/,
  );
});

test('production without dlq.allowed_targets is a warning', () => {
  for (const environment of ['production', 'prod'])
    assertFinding(judgeTargets(undefined, environment), 'warning', /dlq\.allowed_targets/);
  assertFinding(judgeTargets(undefined, 'dev'), 'ok', /any topic that a record names/);
  assertFinding(judgeTargets(['orders.*'], 'production'), 'ok', /orders\.\*/);
});
