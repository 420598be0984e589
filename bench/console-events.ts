import type { Readable } from 'node:stream';
import { createChangeHub } from '../src/console/events/change-hub.ts';
import { watchedMessages } from '../src/dlq/index.ts';
import { watchedJobs } from '../src/jobs/index.ts';
import { localPrincipal } from '../src/kernel/access/principal.ts';
import { sleep, systemClock } from '../src/kernel/clock.ts';
import { watchedOrders } from '../src/outbox/index.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { countAttention, readChanges, type Seen } from '../src/platform/work/changes/read-changes.ts';
import { watchedSagas } from '../src/saga/index.ts';
import { openPostgres } from './support.ts';

/**
 * What the live console costs with a million messages and a million jobs: the statement that finds changes, alone and
 * under 200 changes a second; and the processor time of a server process with 0, 1, 8 and 50 streams meanwhile.
 * node bench/console-events.ts [rows]
 */
const rows = Number(process.argv[2] ?? 1_000_000);
const seconds = 10;
const watched = { dlq: watchedMessages, outbox: watchedOrders, jobs: watchedJobs, sagas: watchedSagas };

const { db, stop } = await openPostgres();
try {
  await fill();
  process.stdout.write(`\n${rows.toLocaleString('en')} messages and as many jobs\n`);
  await measureStatements();
  for (const clients of [0, 1, 8, 50]) await measureStreams(clients);
} finally {
  await stop();
}

async function fill(): Promise<void> {
  await db.query(sql`
    INSERT INTO jobs.job_queue (queue, payload, status, completed_at)
    SELECT 'queue-' || n % 20, '{"order": 1}',
           CASE WHEN n % 100 = 0 THEN 'dead_letter' WHEN n % 50 = 1 THEN 'pending' ELSE 'completed' END, now()
    FROM generate_series(1, ${rows}::int) AS n`);
  for (let from = 0; from < rows; from += 100_000)
    await db.query(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, status, created_at)
      SELECT 'topic-' || n % 20, 'it failed', CASE WHEN n % 100 = 0 THEN 'DEAD' WHEN n % 50 = 1 THEN 'PENDING' ELSE 'RESOLVED' END,
             now() - (${rows}::int - n) * interval '20 milliseconds'
      FROM generate_series(${from}::int + 1, ${Math.min(from + 100_000, rows)}::int) AS n`);
  await db.query(sql`ANALYZE jobs.job_queue, dlq.dlq_messages, dlq.topic_counts`);
}

async function measureStatements(): Promise<void> {
  let since: Seen | null = null;
  const read = async (): Promise<void> => void ({ seen: since } = await readChanges(db, watched, since));
  await read();
  await report('nothing was committed', read);
  const change = async (): Promise<void> => {
    await changeSome(100);
    await read();
  };
  for (let i = 0; i < 3; i += 1) await change();
  await report('100 changes since the last time', read, () => changeSome(100));
  await report('what needs attention, all slices', () => countAttention(db, watched, Object.keys(watched)));
}

async function report(
  name: string,
  work: () => Promise<unknown>,
  before: () => Promise<unknown> = async () => {},
): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < 40; i += 1) {
    await before();
    const beginMs = performance.now();
    await work();
    times.push(performance.now() - beginMs);
  }
  times.sort((a, b) => a - b);
  const at = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  process.stdout.write(`  ${name.padEnd(40)} p50 ${at(0.5)} ms  p95 ${at(0.95)} ms\n`);
}

/** Half of them new jobs, half of them messages whose status changes. */
async function changeSome(count: number): Promise<void> {
  const half = Math.floor(count / 2);
  await db.query(sql`
    INSERT INTO jobs.job_queue (queue, payload) SELECT 'queue-1', '{}' FROM generate_series(1, ${half}::int)`);
  await db.query(sql`
    UPDATE dlq.dlq_messages SET retry_count = retry_count + 1
    WHERE id IN (SELECT id FROM dlq.dlq_messages ORDER BY created_at DESC LIMIT ${half}::int)`);
}

async function measureStreams(clients: number): Promise<void> {
  const hub = createChangeHub({
    process: 'bench',
    readChanges: (since) => readChanges(db, watched, since),
    countAttention: (slices) => countAttention(db, watched, slices),
    watchRedrives: async () => [],
    clock: systemClock,
    onError: (error) => process.stderr.write(`${String(error)}\n`),
  });
  let bytes = 0;
  const streams: Readable[] = [];
  for (let i = 0; i < clients; i += 1) {
    const stream = await hub.open(() => localPrincipal, undefined);
    stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
    streams.push(stream);
  }
  const [transactions, cpu] = [await countTransactions(), process.cpuUsage()];
  const over = AbortSignal.timeout(seconds * 1000);
  while (!over.aborted) {
    await changeSome(20);
    await sleep(100);
  }
  const used = process.cpuUsage(cpu);
  const done = (await countTransactions()) - transactions;
  process.stdout.write(
    `  ${String(clients).padStart(2)} streams: ${((used.user + used.system) / seconds / 10_000).toFixed(1)} % of a core, ` +
      `${(done / seconds).toFixed(1)} transactions/s, ${(bytes / seconds / Math.max(1, clients) / 1000).toFixed(1)} kB/s each\n`,
  );
  for (const stream of streams) stream.destroy();
  hub.stop();
}

async function countTransactions(): Promise<number> {
  const [row] = await db.query<{ count: string }>(sql`
    SELECT xact_commit::text AS count FROM pg_stat_database WHERE datname = current_database()`);
  return Number(row?.count ?? 0);
}
