import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { sql } from '../src/platform/postgres/sql.ts';
import { openPostgres } from './support.ts';

/**
 * What a server costs that has nothing to do: transactions per second, CPU and memory of its process. All of them run
 * at the same time, each in a process and a database of its own, notified by PostgreSQL, with two queues; ours has a
 * destination of the outbox besides. Goals for ours: at most 5 transactions a second and 1 % of a core. Reads /proc, so
 * it needs Linux.
 * node bench/idle.ts [seconds] [statements: how many of ours to list, by calls; 0]
 */
const seconds = Number(process.argv[2] ?? 60);
const listed = Number(process.argv[3] ?? 0);
/** Start-up, the first round of each loop, and pauses that grow while nothing is found. */
const quietAfterMs = 45_000;
const ticksPerSecond = 100;
const target = 'http://127.0.0.1:9/';

const ground = await openPostgres({
  max_connections: '200',
  ...(listed > 0 ? { shared_preload_libraries: 'pg_stat_statements' } : {}),
});
const urlOf = (database: string): string => Object.assign(new URL(ground.url), { pathname: database }).href;
const peer = fileURLToPath(new URL('idle-peer.ts', import.meta.url));
const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const queue = { target: { type: 'http', url: target } };
const contenders = [
  {
    name: 'ours, redrive serve',
    database: 'idle_ours',
    args: [main, 'serve', '--port', '0'],
    env: {
      JOBS_QUEUES: JSON.stringify({ mail: queue, reports: queue }),
      OUTBOX_DESTINATIONS: JSON.stringify({ broker: { type: 'http', url: target } }),
    },
  },
  { name: 'graphile-worker', database: 'idle_graphile', args: [peer, 'graphile'], env: {} },
  { name: 'pg-boss, with notifications', database: 'idle_boss', args: [peer, 'boss'], env: {} },
];
const children: ChildProcess[] = [];
try {
  const running = [];
  for (const contender of contenders) {
    await createDatabase(contender.database);
    running.push({ ...contender, pid: await start(contender) });
  }
  await wait(quietAfterMs);
  if (listed > 0) await ground.db.query(sql`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`);
  if (listed > 0) await ground.db.query(sql`SELECT pg_stat_statements_reset()`);
  const before = await Promise.all(running.map(measure));
  const beganMs = performance.now();
  await wait(seconds * 1000);
  const after = await Promise.all(running.map(measure));
  const passed = (performance.now() - beganMs) / 1000;
  process.stdout.write(
    `\nNothing to do for ${seconds} s, two queues each (Node ${process.version}, ${cpus().length} cores)\n`,
  );
  for (const [i, { name }] of running.entries()) {
    const [a, b] = [before[i], after[i]];
    if (a === undefined || b === undefined) continue;
    const perSecond = ((b.transactions - a.transactions) / passed).toFixed(1).padStart(6);
    const cpu = (((b.cpuSeconds - a.cpuSeconds) / passed) * 100).toFixed(2).padStart(6);
    process.stdout.write(
      `  ${name.padEnd(32)} ${perSecond} transactions/s   ${cpu} % of a core   ${Math.round(b.rssMb)} MB\n`,
    );
  }
  process.stdout.write('  goals for ours: 5 transactions/s, 1 % of a core\n');
  if (listed > 0) await listStatements('idle_ours', passed);
} finally {
  for (const child of children) child.kill('SIGTERM');
  await Promise.all(children.filter(({ exitCode }) => exitCode === null).map((child) => once(child, 'exit')));
  await ground.stop();
}

type Contender = (typeof contenders)[number];

async function createDatabase(name: string): Promise<void> {
  const client = new Client({ connectionString: ground.url });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
}

/** Resolves with its process id when it says that it is ready. */
async function start({ name, database, args, env }: Contender): Promise<number> {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], DATABASE_URL: urlOf(database), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout }))
    if (line.includes('is ready')) {
      child.stdout.resume();
      return child.pid ?? NaN;
    }
  throw new Error(`${name} ended before it was ready`);
}

async function listStatements(database: string, passed: number): Promise<void> {
  const rows = await ground.db.query<{ calls: bigint; query: string }>(sql`
    SELECT s.calls, left(regexp_replace(s.query, '[[:space:]]+', ' ', 'g'), 140) AS query
    FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
    WHERE d.datname = ${database} ORDER BY s.calls DESC LIMIT ${listed}`);
  for (const { calls, query } of rows)
    process.stdout.write(`  ${(Number(calls) / passed).toFixed(2).padStart(6)} calls/s  ${query}\n`);
}

async function measure({ database, pid }: Contender & Readonly<{ pid: number }>) {
  const [row] = await ground.db.query<{ count: number }>(sql`
    SELECT (xact_commit + xact_rollback)::float8 AS count FROM pg_stat_database WHERE datname = ${database}`);
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const rssKb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return {
    transactions: row?.count ?? NaN,
    cpuSeconds: (Number(stat[11]) + Number(stat[12])) / ticksPerSecond,
    rssMb: Number(rssKb) / 1024,
  };
}
