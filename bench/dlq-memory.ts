import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { OutgoingRecord } from '../src/platform/broker/port.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { openGround, orderValue, publishAll, timed, until } from './support.ts';

/**
 * Whether memory stays flat while a million messages are stored and re-driven: a server of its own, its resident
 * memory read every 200 ms from the operating system.
 * node bench/dlq-memory.ts [records]      (Linux)
 */
const count = Number(process.argv[2] ?? 1_000_000);
const main = new URL('../src/main.ts', import.meta.url).pathname;

const ground = await openGround();
await ground.broker.createTopic('bench.v1', 4);
await ground.broker.createTopic('bench.dlq.v1', 4);
const headers = [
  { key: Buffer.from('error'), value: Buffer.from('TimeoutError: no answer within 5000 ms') },
  { key: Buffer.from('original_topic'), value: Buffer.from('bench.v1') },
];
for (let at = 0; at < count; at += 50_000) {
  const records = Array.from({ length: Math.min(50_000, count - at) }, (_, i): OutgoingRecord => {
    return { topic: 'bench.dlq.v1', key: Buffer.from(`c-${i % 997}`), value: orderValue(at + i), headers };
  });
  await publishAll(ground.broker, records);
}

const env = {
  ...process.env,
  DATABASE_URL: ground.url,
  KAFKA_BROKERS: ground.brokers,
  PORT: '18099',
  LOG_LEVEL: 'warn',
};
// What `npm start` uses too: V8 would let garbage pile up as long as the machine has memory.
const flags = ['--max-semi-space-size=8', '--max-old-space-size=256'];
const server = spawn(process.execPath, [...flags, main, 'serve'], { stdio: 'inherit', env });
const samples: number[] = [];
const sampling = setInterval(() => samples.push(residentMb(server.pid ?? 0)), 200);
try {
  const stored = await timed(() => until(async () => (await storedCount()) >= count, 900_000));
  report('storing', stored);
  const url = 'http://127.0.0.1:18099/api/v1/dlq/bench.v1/retry-all';
  const retried = await timed(async () => {
    const answer = await fetch(url, { method: 'POST', signal: AbortSignal.timeout(900_000) });
    process.stdout.write(`${await answer.text()}\n`);
  });
  report('re-driving', retried);
} finally {
  clearInterval(sampling);
  server.kill('SIGTERM');
  await once(server, 'exit');
  await ground.stop();
}

function report(what: string, seconds: number): void {
  const tenth = Math.ceil(samples.length / 10);
  const mean = (part: readonly number[]): string =>
    (part.reduce((a, b) => a + b, 0) / part.length).toFixed(0);
  process.stdout.write(
    `${what} ${count.toLocaleString('en')}: ${seconds.toFixed(0)} s, resident memory at most ` +
      `${Math.max(...samples).toFixed(0)} MB, first tenth ${mean(samples.slice(0, tenth))} MB, ` +
      `last tenth ${mean(samples.slice(-tenth))} MB\n`,
  );
  samples.length = 0;
}

function residentMb(pid: number): number {
  const [, kb] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kb ?? 0) / 1024;
}

async function storedCount(): Promise<number> {
  const rows = await ground.db.query<{ stored: bigint }>(
    sql`SELECT COALESCE(sum(stored), 0)::bigint AS stored FROM dlq.source_partitions`,
  );
  return Number(rows[0]?.stored ?? 0n);
}
