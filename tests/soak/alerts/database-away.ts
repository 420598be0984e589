import assert from 'node:assert/strict';
import { Client } from 'pg';
import { recordSamples } from '../../alerts/record-samples.ts';
import { startRestartablePostgres } from '../../chaos/support/restartable-postgres.ts';
import { startReplica } from '../../chaos/support/start-replica.ts';
import { until } from '../../chaos/support/until.ts';
import { sleep } from '../../../src/kernel/clock.ts';
import { watchAlerts } from './watch-alerts.ts';

const apiErrors = 'ApiErrorBudgetBurn';
const connections = 8;
/** Longer than the objective of the API, 200 ms. */
const heldMs = 300;
const path = '/api/v1/jobs/queues';

/** One replica: its tables are locked, its database is away for hours, and at last it is killed. */
export async function loseDatabase(): Promise<void> {
  const postgres = await startRestartablePostgres();
  const env = {
    DATABASE_URL: postgres.url,
    KAFKA_ENABLED: 'false',
    DATABASE_MAX_OPEN_CONNS: String(connections),
    DATABASE_CONNECT_TIMEOUT: '20s',
  };
  let replica = await startReplica(env);
  const recorder = recordSamples(replica.url);
  const watch = watchAlerts(recorder);
  const answers = async (status: number, times: number): Promise<void> => {
    const all = await Promise.all(Array.from({ length: times }, () => replica.get(path)));
    for (const answer of all) assert.equal(answer?.status, status);
  };
  try {
    await recorder.scrape(11, () => answers(200, 3));
    watch.silent(['DbPoolSaturated', 'ticket'], ['ApiSlow', 'page'], ['ApiSlow', 'ticket']);
    await whileLocked(postgres.url, async () => {
      const waiting = Promise.all(Array.from({ length: 3 * connections }, () => replica.get(path)));
      await until('requests wait', async () => (await replica.metric('db_pool_waiting')) > 0);
      await recorder.scrape(12);
      watch.firing('a lock holds every connection of the pool', ['DbPoolSaturated', 'ticket']);
      return () => waiting;
    });
    await recorder.scrape(2);
    watch.silent(['DbPoolSaturated', 'ticket']);

    await recorder.scrape(6, () =>
      whileLocked(postgres.url, async () => {
        const slow = answers(200, 4);
        await sleep(heldMs);
        return () => slow;
      }),
    );
    watch.firing(`requests wait ${heldMs} ms for a lock`, ['ApiSlow', 'page'], ['ApiSlow', 'ticket']);
    await recorder.scrape(36, () => answers(200, 1));
    watch.silent(['ApiSlow', 'page'], [apiErrors, 'page'], [apiErrors, 'ticket'], ['LoopStalled', 'ticket']);

    await postgres.crash();
    await until('requests fail', async () => (await replica.get(path))?.status === 503);
    await recorder.scrape(8, () => answers(503, 3));
    watch.firing('the database is away, requests end with 503', [apiErrors, 'page'], [apiErrors, 'ticket']);
    recorder.persist(6 * 60 + 5);
    const stretched = 'the database stays away for 6 h (the last sample again)';
    watch.firing(stretched, ['LoopStalled', 'ticket']);
    await postgres.restart();
    await until('requests succeed', async () => (await replica.get(path))?.status === 200);
    await recorder.scrape(36, () => answers(200, 3));
    watch.silent([apiErrors, 'page'], ['LoopStalled', 'ticket'], ['Down', 'page'], ['Down', 'ticket']);

    await replica.kill();
    await recorder.scrape(17);
    watch.firing('the only replica is killed', ['Down', 'page'], ['Down', 'ticket']);
    replica = await startReplica({ ...env, PORT: new URL(replica.url).port });
    await recorder.scrape(2);
    watch.silent(['Down', 'page'], ['Down', 'ticket']);
    await watch.verify();
  } finally {
    await replica.kill();
    await postgres.stop();
  }
}

/** `work` returns what ends only after the lock. */
async function whileLocked(url: string, work: () => Promise<() => Promise<unknown>>): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  let rest: (() => Promise<unknown>) | undefined;
  try {
    await client.query('BEGIN; LOCK TABLE jobs.queues IN ACCESS EXCLUSIVE MODE');
    rest = await work();
  } finally {
    await client.end();
  }
  await rest();
}
