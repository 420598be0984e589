import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Pool, type PoolClient } from 'pg';
import { auditPartitions, orderRetention } from '../../src/outbox/upkeep/retention.ts';
import { runTasks } from '../../src/platform/work/retention-tasks.ts';
import { Sql, sql } from '../../src/platform/postgres/sql.ts';
import {
  call,
  jobs,
  notRetryable,
  outbox,
  saga,
  sagaGuard,
  sagaGuardMigration,
  service,
  snooze,
  type Job,
  type JobContext,
} from '../../src/sdk/index.ts';
import { createDatabaseRole, type DatabaseRole, type GrantFile } from '../support/database-role.ts';
import { connectTo, createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { runHttpFlows } from '../support/every-flow/http-flows.ts';
import { openOutsideWorld, type OutsideWorld } from '../support/every-flow/outside-world.ts';
import { newStep } from '../support/guarded-steps.ts';
import { loggerInto, type LoggedLine } from '../support/logged-lines.ts';
import { runRedrive } from '../support/redrive-process.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** For each use a role with the rights of its file in deploy/postgres, and nothing else, does all of that use. */
const dayMs = 86_400_000;

type Readiness = Readonly<{ status: string; checks: Record<string, { status: string; message?: string }> }>;

describe('a server', () => {
  let world: OutsideWorld;
  before(async () => void (world = await openOutsideWorld()));
  after(() => world.close());

  for (const [file, kind, migrate] of [
    ['server-with-migrations', 'empty', 'true'],
    ['server', 'migrated', 'false'],
  ] as const)
    describe(`with the rights of ${file}.sql`, () => {
      let database: TestDatabase;
      let role: DatabaseRole;
      let system: TestSystem;
      let env: Record<string, string>;
      const lines: LoggedLine[] = [];
      before(async () => {
        database = await createTestDatabase(kind);
        role = await createDatabaseRole(database.url, file);
        env = { DATABASE_URL: role.url, DATABASE_MIGRATE: migrate };
        system = await startTestSystem({
          kafka: 'local',
          database,
          env: { ...env, ...world.env },
          logger: loggerInto(lines),
        });
      });
      after(async () => {
        await system?.stop();
        await role.drop();
        await database.drop();
      });

      test('every route and every worker does its work', async () => {
        assert.ok(system.broker);
        await runHttpFlows({ api: system.api, broker: system.broker });
        await eventually(() => assert.ok(world.calls.includes('/hook'), 'nobody was notified'));
        const { body } = await system.api.get<Readiness>('/readyz');
        assert.deepEqual(
          [body.checks['rights'], body.checks['database']?.status],
          [{ status: 'healthy' }, 'healthy'],
        );
      });

      test('retention, archives and the months of the audit work', async () => {
        await database.db.query(sql`
          UPDATE dlq.dlq_messages SET updated_at = now() - interval '400 days', status = 'RESOLVED'`);
        const archived = await runRedrive(['dlq', 'archive', '--json'], env);
        assert.equal(archived.code, 0, archived.err);
        const db = connectTo(role.url);
        try {
          const months = await database.db.query<{ name: string }>(auditMonths);
          await role.asOwner(`DROP TABLE outbox.${months.at(-1)?.name ?? ''}`);
          const options = { ledgerTtlMs: 1, auditRetentionMs: 400 * dayMs };
          const { signal } = new AbortController();
          const kept = await runTasks([auditPartitions(db, options), ...orderRetention(db, options)], signal);
          assert.deepEqual([kept['made'], kept['adopted'], kept['dropped']], [1, 0, 0]);
          await role.asOwner(oldMonth);
          const all = await auditPartitions(db, { auditRetentionMs: 0 }).run(signal);
          assert.deepEqual(all, { made: 0, adopted: 0, dropped: 1 });
        } finally {
          await db.end();
        }
      });

      test('doctor finds every right, and nothing in the log was refused', async () => {
        const doctor = await runRedrive(['doctor'], env);
        assert.equal(doctor.code, 0, doctor.out);
        assert.match(doctor.out, /^ok +rights /m);
        assert.deepEqual(
          lines.filter(({ err }) => err?.code === '42501'),
          [],
        );
      });

      test('a right that is missing is named by doctor, readiness and the log, and the request says so', async () => {
        await role.asOwner(
          'REVOKE SELECT ON jobs.queues FROM ROLE; REVOKE USAGE ON SEQUENCE platform.lease_epochs FROM ROLE',
        );
        try {
          const answer = await system.api.get<{ error: { message: string } }>('/api/v1/jobs/queues');
          assert.equal(answer.status, 503, answer.text);
          assert.match(answer.body.error.message, /database role lacks a privilege; run `redrive doctor`/);
          assert.ok(
            lines.some(({ level, err }) => level === 'error' && /table queues/.test(err?.message ?? '')),
          );
          await eventually(async () => {
            const { body } = await system.api.get<Readiness>('/readyz');
            assert.equal(body.status, 'degraded');
            assert.match(body.checks['rights']?.message ?? '', /SELECT on jobs\.queues/);
          });
          const doctor = await runRedrive(['doctor'], env);
          assert.equal(doctor.code, 2);
          assert.match(doctor.out, new RegExp(`GRANT SELECT ON jobs\\.queues TO ${role.name}`));
          assert.match(
            doctor.out,
            new RegExp(`GRANT USAGE ON SEQUENCE platform\\.lease_epochs TO ${role.name}`),
          );
        } finally {
          await role.asOwner(
            'GRANT SELECT ON jobs.queues TO ROLE; GRANT USAGE ON SEQUENCE platform.lease_epochs TO ROLE',
          );
        }
      });
    });
});

const auditMonths = sql`SELECT name FROM outbox.audit_partitions() ORDER BY begins_at`;
const oldMonth = `CREATE TABLE outbox.outbox_audit_2001_01 PARTITION OF outbox.outbox_audit
  FOR VALUES FROM ('2001-01-01') TO ('2001-02-01')`;

describe('the functions that keep the audit as its owner', () => {
  let database: TestDatabase;
  before(async () => void (database = await createTestDatabase()));
  after(() => database.drop());

  test('only a role that was granted them may call them', async () => {
    const role = await createDatabaseRole(database.url, 'add-orders');
    const db = connectTo(role.url);
    try {
      for (const change of [sql`drop_old_audit('0')`, sql`make_audit_months()`, sql`adopt_default_audit()`])
        await assert.rejects(db.query(sql`SELECT outbox.${change}`), { code: '42501' });
    } finally {
      await db.end();
      await role.drop();
    }
  });

  test('temporary tables of the caller do not mislead them, and no month that goes on is dropped', async () => {
    const role = await createDatabaseRole(database.url, 'server');
    const db = connectTo(role.url);
    try {
      await db.transaction(async (tx) => {
        await tx.query(sql`CREATE TEMP TABLE pg_inherits (inhrelid oid, inhparent oid)`);
        const rows = await tx.query<{ made: number }>(sql`SELECT outbox.make_audit_months() AS made`);
        assert.deepEqual(rows, [{ made: 0 }]);
      });
      await assert.rejects(db.query(sql`SELECT outbox.drop_old_audit('-1 year')`), /must not be negative/);
      assert.deepEqual(await db.query(sql`SELECT outbox.drop_old_audit('0') AS dropped`), [{ dropped: 0 }]);
    } finally {
      await db.end();
      await role.drop();
    }
  });

  test('tables of later migrations are covered by server.sql', async () => {
    const role = await createDatabaseRole(database.url, 'server');
    try {
      await role.asOwner('CREATE TABLE jobs.later (id bigserial)');
      const rows = await database.db.query<{ may: boolean }>(sql`
        SELECT has_table_privilege(${role.name}, 'jobs.later', 'SELECT')
               AND has_sequence_privilege(${role.name}, 'jobs.later_id_seq', 'USAGE') AS may`);
      assert.deepEqual(rows, [{ may: true }]);
    } finally {
      await role.asOwner('DROP TABLE IF EXISTS jobs.later');
      await role.drop();
    }
  });
});

describe('a service', () => {
  let database: TestDatabase;
  before(async () => void (database = await createTestDatabase()));
  after(() => database.drop());

  /** As a role with the rights of one file; what it does is committed. */
  const asRole = async (
    file: GrantFile,
    work: (
      pool: Pool,
      inTransaction: <T>(work: (tx: PoolClient) => Promise<T>) => Promise<T>,
    ) => Promise<void>,
  ): Promise<void> => {
    const role = await createDatabaseRole(database.url, file);
    const pool = new Pool({ connectionString: role.url, max: 5 });
    const inTransaction = async <T>(run: (tx: PoolClient) => Promise<T>): Promise<T> => {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const value = await run(client);
        await client.query('COMMIT');
        return value;
      } finally {
        client.release();
      }
    };
    try {
      await work(pool, inTransaction);
    } finally {
      await pool.end();
      await role.drop();
    }
  };

  test('reads and writes nothing of other modules, of the audit log and of access', async () => {
    const own = {
      'add-orders': 'outbox',
      'enqueue-jobs': 'jobs',
      'work-jobs': 'jobs',
      'start-sagas': 'saga',
    } as const;
    for (const [file, schema] of Object.entries(own)) {
      const role = await createDatabaseRole(database.url, file as GrantFile);
      try {
        const rows = await database.db.query<{ name: string }>(sql`
          SELECT n.nspname || '.' || c.relname AS name
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE c.relkind IN ('r', 'p', 'v') AND n.nspname IN ('dlq', 'outbox', 'jobs', 'saga', 'platform', 'audit', 'access')
            AND has_schema_privilege(${role.name}, n.oid, 'USAGE')
            AND (has_table_privilege(${role.name}, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')
                 OR has_any_column_privilege(${role.name}, c.oid, 'SELECT, INSERT, UPDATE'))`);
        const foreign = rows
          .map(({ name }) => name)
          .filter((name) => !name.startsWith(`${schema}.`) && !name.startsWith('platform.'));
        assert.deepEqual(foreign, [], file);
        const platform = rows.filter(({ name }) => name.startsWith('platform.')).map(({ name }) => name);
        const known = new Set(['platform.idle_workers', 'platform.migrations', 'platform.notify_events']);
        assert.deepEqual(
          platform.filter((name) => !known.has(name)),
          [],
          file,
        );
        // Functions that act as their owner.
        const definers = await database.db.query<{ name: string }>(sql`
          SELECT n.nspname || '.' || p.proname AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
          WHERE p.prosecdef AND has_schema_privilege(${role.name}, n.oid, 'USAGE')
            AND has_function_privilege(${role.name}, p.oid, 'EXECUTE')`);
        assert.deepEqual(definers, [], file);
      } finally {
        await role.drop();
      }
    }
  });

  test('that adds orders needs only the rights of add-orders.sql', () =>
    asRole('add-orders', async (pool, inTransaction) => {
      const order = { destination: 'broker', idempotencyKey: 'order-0001', request: { n: 1 } };
      const add = (more: object) => inTransaction((tx) => outbox.add(tx, { ...order, ...more }));
      assert.equal((await add({})).outcome, 'created');
      assert.equal((await add({})).outcome, 'replayed');
      assert.equal((await add({ request: { n: 2 } })).outcome, 'mismatch');
      assert.equal((await add({ idempotencyKey: 'order-0002', orderingKey: 'account' })).outcome, 'created');
      await database.db.query(sql`
        INSERT INTO outbox.outbox_orders
          (idempotency_key, request_json, request_digest, status, next_attempt_at, destination)
        VALUES ('internal-1', '{}', '', 'queued', now(), '_notify_hook')`);
      assert.equal((await add({ idempotencyKey: 'internal-1' })).outcome, 'mismatch');
      const { rows } = await pool.query(
        `SELECT outcome FROM outbox.add_order('{"n":1}', 'order-0003', 'broker')`,
      );
      assert.deepEqual(rows, [{ outcome: 'created' }]);
      await assert.rejects(pool.query('SELECT * FROM outbox.outbox_orders'), { code: '42501' });
    }));

  test('that enqueues jobs needs only the rights of enqueue-jobs.sql', () =>
    asRole('enqueue-jobs', async (pool, inTransaction) => {
      await inTransaction((tx) => jobs.enqueue(tx, 'mail', { n: 1 }));
      const first = await jobs.enqueue(pool, 'mail', { n: 2 }, { dedupeKey: 'one' });
      const again = await jobs.enqueue(pool, 'mail', { n: 2 }, { dedupeKey: 'one' });
      assert.deepEqual([first.duplicate, again.duplicate], [false, true]);
      await jobs.enqueueMany(pool, 'mail', [
        { payload: 1, priority: 5 },
        { payload: 2, dedupeKey: 'two' },
      ]);
      await pool.query(`SELECT * FROM jobs.enqueue('mail', '{}')`);
      await assert.rejects(pool.query('DELETE FROM jobs.job_queue'), { code: '42501' });
    }));

  test('that works on jobs needs only the rights of work-jobs.sql', () =>
    asRole('work-jobs', async (pool) => {
      const troubles: unknown[] = [];
      const settings = [
        ['plain', sql`max_running = NULL`],
        ['limited', sql`max_running = 3, rate_count = 100, rate_window_ms = 1000`],
        ['forgetful', sql`keep_completed = false`],
      ] as const;
      const workers = jobs.workers({
        pool,
        pollMs: 50,
        onEvent: (event) => event.type === 'trouble' && troubles.push(event),
      });
      const handler = async ({ payload }: Job, { progress, heartbeat }: JobContext): Promise<void> => {
        progress({ at: payload });
        await heartbeat();
        if (payload === 'dies') throw notRetryable('never');
        if (payload === 'fails') throw new Error('again and again');
        if (payload === 'snoozes') throw snooze(1);
      };
      try {
        for (const [queue, setting] of settings) {
          await database.db.query(sql`INSERT INTO jobs.queues (queue) VALUES (${queue})`);
          await database.db.query(sql`
            UPDATE jobs.queues SET backoff_initial_ms = 20, max_deferrals = 1, ${setting} WHERE queue = ${queue}`);
          for (const payload of ['succeeds', 'dies', 'fails', 'snoozes'])
            await jobs.enqueue(pool, queue, payload, { maxRetries: 2 });
          await workers.work({ queue, handler });
        }
        await eventually(async () => {
          const rows = await database.db.query(sql`
            SELECT queue, payload, status FROM jobs.job_queue
            WHERE queue IN ('plain', 'limited', 'forgetful') AND status NOT IN ('completed', 'dead_letter')`);
          assert.deepEqual(rows, []);
        });
      } finally {
        await workers.stop();
      }
      assert.deepEqual(troubles, []);
    }));

  test('that starts sagas needs only the rights of start-sagas.sql', () =>
    asRole('start-sagas', async (pool, inTransaction) => {
      const shop = service('shop', { reserve: call('POST /reserve'), release: call('POST /release') });
      const workflow = saga<{ sku: string }>('checkout')
        .step('reserve', { do: () => shop.reserve(), undo: () => shop.release() })
        .build();
      const start = (key: string) =>
        inTransaction((tx) => saga.start(tx, workflow, { sku: 'shoe' }, { key, register: true }));
      assert.equal((await start('a')).outcome, 'started');
      assert.equal((await start('a')).outcome, 'replayed');
      const { rows } = await pool.query(`SELECT outcome FROM saga.start_saga('checkout', '{"sku":"hat"}')`);
      assert.deepEqual(rows, [{ outcome: 'started' }]);
      await assert.rejects(pool.query('DELETE FROM saga.saga_states'), { code: '42501' });
    }));

  test('that guards steps needs only the rights of guard-steps.sql', async () => {
    await database.db.query(new Sql([sagaGuardMigration()], []));
    await asRole('guard-steps', async (pool) => {
      const guard = sagaGuard({ pool, onError: (error) => assert.fail(String(error)) });
      const done = guard.action(() => ({ id: 1 }));
      const undone = guard.undo(() => ({ id: 1 }));
      const [step, early, long, deferred] = [newStep(), newStep(), newStep(), newStep()];
      for (const time of ['first', 'second']) assert.equal((await done(step.action())).status, 200, time);
      for (const time of ['first', 'second']) assert.equal((await undone(step.undo())).status, 200, time);
      assert.equal((await undone(early.undo())).status, 204);
      assert.equal((await done(early.action())).status, 409);
      const slow = guard.longAction({ work: async () => 1, effect: () => ({ id: 1 }) });
      await eventually(async () => assert.equal((await slow(long.action())).status, 200));
      assert.equal((await guard.deferredAction(() => {})(deferred.action())).status, 202);
      const ended = await guard.complete({ sagaId: deferred.sagaId, step: 'reserve' }, () => ({ id: 1 }));
      assert.ok(ended);
      assert.equal(await guard.cleanUp(), 0);
      await guard.stop();
    });
  });
});
