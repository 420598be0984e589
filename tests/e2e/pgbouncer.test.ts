import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Pool } from 'pg';
import { jobs, outbox, type AddedOrder } from '../../src/sdk/index.ts';
import type { PgBouncer } from '../../tools/pgbouncer/start-pgbouncer.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { runHttpFlows } from '../support/every-flow/http-flows.ts';
import { openOutsideWorld, type OutsideWorld } from '../support/every-flow/outside-world.ts';
import { loggerInto, type LoggedLine } from '../support/logged-lines.ts';
import { runRedrive } from '../support/redrive-process.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { needsPgBouncer, startTestPgBouncer } from '../support/test-pgbouncer.ts';

/** Everything through a real PgBouncer in transaction mode, which hands each transaction to another connection. */
describe('through PgBouncer', needsPgBouncer, () => {
  let pooler: PgBouncer;
  let world: OutsideWorld;
  before(async () => {
    pooler = await startTestPgBouncer();
    world = await openOutsideWorld();
  });
  after(async () => {
    await world.close();
    await pooler.stop();
  });

  type Setting = Readonly<{
    name: string;
    listens: boolean;
    env: (direct: string) => Record<string, string>;
  }>;
  const settings: readonly Setting[] = [
    { name: 'with wake: poll', listens: false, env: () => ({ DATABASE_WAKE: 'poll' }) },
    { name: 'with direct_url', listens: true, env: (direct) => ({ DATABASE_DIRECT_URL: direct }) },
    { name: 'with neither', listens: false, env: () => ({}) },
  ];

  for (const { name, env, listens } of settings)
    describe(name, () => {
      let database: TestDatabase;
      let system: TestSystem;
      let pooled: Record<string, string>;
      const lines: LoggedLine[] = [];
      let loggedBefore = 0;
      before(async () => {
        loggedBefore = pooler.log().length;
        database = await createTestDatabase('empty');
        pooled = { DATABASE_URL: pooler.urlOf(database.url), ...env(database.url) };
        system = await startTestSystem({
          kafka: 'local',
          database,
          env: { ...pooled, ...world.env },
          logger: loggerInto(lines),
        });
      });
      after(async () => {
        await system?.stop();
        await database.drop();
      });

      test('the server migrates, starts, and every slice works', async () => {
        assert.ok(system.broker);
        await runHttpFlows({ api: system.api, broker: system.broker });
        const { body } = await system.api.get<{ checks: Record<string, { status: string }> }>('/readyz');
        assert.equal(body.checks['database']?.status, 'healthy');
        const troubled = lines.filter(({ level, err }) => level !== 'info' && err !== undefined);
        assert.deepEqual(troubled, []);
      });

      test('archive procedures and doctor work', async () => {
        const archived = await runRedrive(['dlq', 'archive', '--json'], pooled);
        assert.deepEqual([archived.code, archived.err], [0, '']);
        const doctor = await runRedrive(['doctor'], pooled);
        assert.equal(doctor.code, name === 'with neither' ? 1 : 0, doctor.out);
        if (listens) assert.doesNotMatch(pooler.log().slice(loggedBefore), /unsupported startup parameter/);
        assert.match(doctor.out, listens ? /^ok +listen /m : /^(skipped|warning) +listen /m);
      });

      test('the client library adds orders and jobs, and works on jobs', async () => {
        const pool = new Pool({ connectionString: pooled['DATABASE_URL'], max: 5 });
        const workers = jobs.workers({ pool, wake: 'poll', pollMs: 50 });
        const done = new Set<unknown>();
        try {
          const worker = await workers.work({
            queue: 'sdk',
            concurrency: 5,
            handler: async ({ payload }) => void done.add((payload as { n: number }).n),
          });
          for (let n = 0; n < 40; n += 1) await jobs.enqueue(pool, 'sdk', { n });
          await jobs.enqueueMany(pool, 'sdk', [{ payload: { n: 40 } }, { payload: { n: 41 } }]);
          assert.equal((await addOrder(pool)).outcome, 'created');
          await eventually(() => assert.equal(done.size, 42));
          await worker.stop();
        } finally {
          await workers.stop();
          await pool.end();
        }
      });
    });

  const addOrder = async (pool: Pool): Promise<AddedOrder> => {
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      const added = await outbox.add(client, {
        idempotencyKey: 'sdk-order-1',
        destination: 'broker',
        request: {},
      });
      await client.query('COMMIT');
      return added;
    } finally {
      client.release();
    }
  };
});
