import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../../tests/support/database.ts';
import { Sql } from '../../../platform/postgres/sql.ts';
import type { Finding } from '../finding.ts';
import { examineAuditMonths } from './audit-months.ts';
import { examineAutovacuum } from './autovacuum.ts';
import { examineIndexes } from './invalid-indexes.ts';
import { createMasterKeyFile, newMasterKey } from '../../../../tests/support/encryption.ts';
import { keyFile } from '../../../platform/protect/key-file.ts';
import { examineRemovedParts } from './removed-parts.ts';
import { examineMessageEncryption } from './message-encryption.ts';
import { examineRetryPolicies } from './retry-policies.ts';
import { countExpired, examineStuckRows } from './stuck-rows.ts';
import { examineTopicIds } from './topic-ids.ts';

const noRules = { rules: [], patterns: {}, hashKey: null };

const schemas = ['platform', 'dlq', 'outbox', 'jobs', 'saga'];
let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const run = (statement: string): Promise<unknown> => database.db.query(new Sql([statement], []));

beforeEach(() => run('SELECT outbox.make_audit_months()'));

async function turns(
  examine: () => Promise<Finding>,
  [breaks, status, text, mends]: readonly [string, Finding['status'], RegExp, string],
): Promise<void> {
  assert.equal((await examine()).status, 'ok');
  await run(breaks);
  const broken = await examine();
  assert.equal(broken.status, status);
  assert.match(`${broken.found} -> ${broken.advice ?? ''}`, text);
  await run(mends);
  assert.equal((await examine()).status, 'ok');
}

test('a retry policy that is disabled, or that no server looks after, is a warning', async () => {
  const policy = {
    name: 'soon',
    topics: ['orders.*'],
    delayMs: 1000,
    backoff: 2,
    maxAttempts: 3,
    ratePerSecond: 1,
  };
  const config = {
    dlq: { autoRetry: [{ ...policy, errorClasses: undefined, fingerprints: undefined, canary: undefined }] },
  };
  const examine = (): Promise<Finding> => examineRetryPolicies(database.db, config);
  const none = await examineRetryPolicies(database.db, { dlq: { autoRetry: [] } });
  assert.equal(none.status, 'skipped');
  assert.match((await examine()).found, /no server looks after soon/);
  await run(`INSERT INTO dlq.retry_policies (name, place, definition) VALUES ('soon', 1, '{}')`);
  await turns(examine, [
    `UPDATE dlq.retry_policies SET state = 'disabled'`,
    'warning',
    /disabled: soon -> .*policies resume/,
    `UPDATE dlq.retry_policies SET state = 'paused'`,
  ]);
  await run(`INSERT INTO dlq.retry_policies (name, place, definition) VALUES ('other', 2, '{}')`);
  assert.match((await examine()).found, /the servers also have other/);
});

test('data keys that cannot be used are a problem, and plain messages of encrypted topics a warning', async () => {
  const key = newMasterKey('first');
  const file = createMasterKeyFile(key);
  const master = keyFile(file.path);
  const protect = {
    ...noRules,
    encrypt: { topics: ['secret.*'], masterKey: { in: 'file' as const, file: file.path } },
  };
  const examine = (): Promise<Finding> => examineMessageEncryption(database.db, { protect, master });
  const none = { ...noRules, encrypt: { topics: [], masterKey: null } };
  assert.equal(
    (await examineMessageEncryption(database.db, { protect: none, master: null })).status,
    'skipped',
  );
  await run(`INSERT INTO platform.data_keys (slice, purpose, month, wrapped)
             VALUES ('dlq', 'payload', '2026-11-01', '${await master.wrap(Buffer.alloc(32))}')`);
  await turns(examine, [
    `INSERT INTO dlq.dlq_messages (original_topic, error_message) VALUES ('secret.v1', 'failed'), ('open.v1', 'failed');
     INSERT INTO dlq.dlq_messages_archive SELECT * FROM dlq.dlq_messages WHERE original_topic = 'secret.v1'`,
    'warning',
    /^2 messages of encrypted topics, live or archived, are stored in the clear/,
    `DELETE FROM dlq.dlq_messages WHERE original_topic = 'secret.v1'; DELETE FROM dlq.dlq_messages_archive`,
  ]);
  file.write(newMasterKey('second'));
  const found = await examine();
  assert.equal(found.status, 'problem');
  assert.match(found.found, /^1 of 1 data keys cannot be used: master key first is missing/);
  await run('DELETE FROM platform.data_keys');
});

test('messages of which parts were removed at ingest are a warning', async () => {
  const rule = { names: {}, fields: ['a'], headers: [], key: false, patterns: [], action: 'mask' } as const;
  assert.equal((await examineRemovedParts(database.db, { rules: [rule] })).status, 'skipped');
  await turns(
    () => examineRemovedParts(database.db, { rules: [{ ...rule, dropAtIngest: true }] }),
    [
      `INSERT INTO dlq.dlq_messages (original_topic, error_message, removed_parts)
       VALUES ('a.v1', 'failed', '{value}'), ('b.v1', 'failed', '{error}')`,
      'warning',
      /^1 pending messages cannot be retried/,
      'DELETE FROM dlq.dlq_messages',
    ],
  );
});

test('autovacuum that is off for a table is a problem', () =>
  turns(
    () => examineAutovacuum(database.db, schemas),
    [
      'ALTER TABLE jobs.job_queue SET (autovacuum_enabled = false)',
      'problem',
      /off for jobs\.job_queue -> ALTER TABLE jobs\.job_queue RESET/,
      'ALTER TABLE jobs.job_queue RESET (autovacuum_enabled)',
    ],
  ));

test('an invalid index is a problem', () =>
  turns(
    () => examineIndexes(database.db, schemas),
    [
      `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'outbox.idx_outbox_orders_claim'::regclass`,
      'problem',
      /REINDEX INDEX CONCURRENTLY outbox\.idx_outbox_orders_claim/,
      `UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'outbox.idx_outbox_orders_claim'::regclass`,
    ],
  ));

test('expired leases are found by an index on tables that grow large', async () => {
  for (const table of ['dlq.dlq_messages', 'outbox.outbox_orders', 'jobs.job_queue', 'saga.saga_states']) {
    const { text } = countExpired(table);
    const plan = await database.db.transaction(async (tx) => {
      await tx.query(new Sql(['SET LOCAL enable_seqscan = off'], []));
      return tx.query(new Sql([`EXPLAIN ${text}`], []));
    });
    assert.doesNotMatch(JSON.stringify(plan), /Seq Scan/, table);
  }
});

test('a lease that expired long ago is a warning', () =>
  turns(
    () => examineStuckRows(database.db, schemas),
    [
      `INSERT INTO dlq.dlq_messages (original_topic, error_message, status, lease_owner, lease_until)
     VALUES ('orders', 'failed', 'RETRYING', 'gone', clock_timestamp() - interval '6 minutes')`,
      'warning',
      /1 of dlq\.dlq_messages/,
      `UPDATE dlq.dlq_messages SET lease_until = clock_timestamp() - interval '4 minutes'`,
    ],
  ));

test('a missing partition of the next month is a warning', () =>
  turns(
    () => examineAuditMonths(database.db),
    [
      `DO $$ DECLARE v_name TEXT; BEGIN
       SELECT name INTO v_name FROM outbox.audit_partitions()
       WHERE begins_at <= now() + interval '1 month' AND ends_at > now() + interval '1 month';
       EXECUTE format('DROP TABLE outbox.%I', v_name);
     END $$`,
      'warning',
      /no partition for the next month/,
      'SELECT outbox.make_audit_months()',
    ],
  ));

test('a topic that was deleted and made again is a warning', () => {
  const [old, now] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'];
  const partition = {
    topic: 'orders.dlq',
    topicId: now,
    partition: 0,
    node: 1,
    start: 0n,
    end: 5n,
    stable: 5n,
  };
  const insert = (id: string): string => `
    INSERT INTO dlq.source_partitions (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset)
    VALUES ('c', 'orders.dlq', '${id}', 0, 0, 5, 5)`;
  return turns(
    () => examineTopicIds(database.db, 'c', [partition as never]),
    [
      insert(old),
      'warning',
      /deleted and made again since they were read: orders\.dlq/,
      `UPDATE dlq.source_partitions SET gone = true WHERE topic_id = '${old}'`,
    ],
  );
});
