import assert from 'node:assert/strict';
import { sleep } from '../../../src/kernel/clock.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { recordSamples } from '../../alerts/record-samples.ts';
import { startReplica, type Replica } from '../../chaos/support/start-replica.ts';
import { createTestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { openOutsideWorld } from '../../support/every-flow/outside-world.ts';
import { openTestKafka } from '../../support/test-kafka.ts';
import { watchAlerts, type WatchedAlert } from './watch-alerts.ts';

/** Longer than every objective: dead letters and orders 60 s, jobs 30 s. */
const pausedMs = 63_000;
const items = 30;

const budgets: readonly WatchedAlert[] = [
  'DlqIngestBudgetBurn',
  'OutboxBudgetBurn',
  'JobsBudgetBurn',
].flatMap((alert): readonly WatchedAlert[] => [
  [alert, 'page'],
  [alert, 'ticket'],
]);

const histograms = ['dlq_ingest_delay_seconds', 'outbox_settle_seconds', 'jobs_start_delay_seconds'];

/** The only replica is stopped for a minute: all that comes meanwhile is done too late. */
export async function pauseReplica(): Promise<void> {
  const kafka = openTestKafka();
  const topic = await kafka.createTopic('slow.dlq.v1');
  const world = await openOutsideWorld();
  const { url, db, drop } = await createTestDatabase();
  const brokers = process.env['KAFKA_BROKERS'] ?? '';
  const env = { DATABASE_URL: url, KAFKA_BROKERS: brokers, ...kafka.env, ...world.env };
  const replica = await startReplica(env);
  const recorder = recordSamples(replica.url);
  const watch = watchAlerts(recorder);
  let added = 0;
  const add = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) await kafka.publish({ topic, value: '{}' });
    await db.query(sql`
      SELECT outbox.add_order('{}', 'late-order-' || ${added}::int + n, 'broker'), jobs.enqueue('pushed', '{}')
      FROM generate_series(1, ${count}::int) n`);
    added += count;
  };
  try {
    await add(items);
    await untilMeasured(replica, added);
    await recorder.scrape(5);
    await add(items);
    await untilMeasured(replica, added);
    await recorder.scrape(6);
    watch.silent(...budgets);
    replica.pause();
    await add(items);
    await sleep(pausedMs);
    replica.resume();
    await untilMeasured(replica, added);
    await recorder.scrape(3);
    watch.firing(`${items} items come while the replica is stopped for ${pausedMs / 1000} s`, ...budgets);
    await recorder.scrape(65);
    watch.silent(...budgets.filter(([, severity]) => severity === 'page'));
    await watch.verify();
  } finally {
    await replica.kill();
    await world.close();
    await kafka.close();
    await drop();
  }
}

async function untilMeasured(replica: Replica, count: number): Promise<void> {
  await eventually(async () => {
    for (const histogram of histograms)
      assert.ok((await replica.metric(`${histogram}_count`)) >= count, histogram);
  });
}
