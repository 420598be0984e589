import { readdirSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { Client } from 'pg';

/**
 * What each measured part of a bench costs besides time: CPU of this process and of PostgreSQL, WAL, and statements by
 * pg_stat_statements with their calls, rows, blocks and WAL. On a machine that does other things too, these figures
 * mean more than rates. It changes `bench/support.ts` as it is loaded, so that it measures older commits as well:
 * node --import ./bench/cost.ts bench/dlq-retry.ts 10000
 * COST_STATEMENTS=20 prints as many statements (default 0). Reads /proc, so it needs Linux.
 */
const statements = Number(process.env['COST_STATEMENTS'] ?? 0);
const ticksPerSecond = 100;
const changes: readonly (readonly [string, string])[] = [
  [
    `shared_buffers: '512MB'`,
    `shared_buffers: '512MB', shared_preload_libraries: 'pg_stat_statements', 'pg_stat_statements.track': 'all', 'pg_stat_statements.max': '10000'`,
  ],
  [
    `const db = connectTo(postgres.url);`,
    `globalThis.benchPostgres = postgres; const db = connectTo(postgres.url);`,
  ],
  [
    `const begin = performance.now();`,
    `const endCost = await globalThis.beginCost(); const begin = performance.now();`,
  ],
  [
    `return (performance.now() - begin) / 1000;`,
    `const passed = (performance.now() - begin) / 1000; await endCost(passed); return passed;`,
  ],
];

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (!url.endsWith('/bench/support.ts')) return loaded;
    if (loaded.source === null || loaded.source === undefined) throw new Error('bench/support.ts is empty');
    let source = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source);
    for (const [before, after] of changes) {
      if (!source.includes(before)) throw new Error(`bench/support.ts has no line ${before}`);
      source = source.replace(before, () => after);
    }
    return { ...loaded, source };
  },
});

type Postgres = Readonly<{ url: string; pid: number }>;
type Measured = Readonly<{ cpuMs: number; serverMs: number; wal: number; transactions: number }>;
const shared: typeof globalThis & { benchPostgres?: Postgres; beginCost?: typeof beginCost } = globalThis;
shared.beginCost = beginCost;
let parts = 0;

async function beginCost(): Promise<(seconds: number) => Promise<void>> {
  const postgres = shared.benchPostgres;
  if (postgres === undefined) return async () => {};
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  await client.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
  await client.query('SELECT pg_stat_statements_reset()');
  const before = await measure(client, postgres.pid);
  return async (seconds) => {
    const after = await measure(client, postgres.pid);
    const top = statements === 0 ? [] : await readStatements(client);
    await client.end();
    print(seconds, before, after, top);
  };
}

async function measure(client: Client, postmaster: number): Promise<Measured> {
  const { rows } = await client.query<{ wal: string; transactions: string }>(
    `SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS wal,
            (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()) AS transactions`,
  );
  const { user, system } = process.cpuUsage();
  const [row] = rows;
  return {
    cpuMs: (user + system) / 1000,
    serverMs: serverTicks(postmaster) * (1000 / ticksPerSecond),
    wal: Number(row?.wal),
    transactions: Number(row?.transactions),
  };
}

/** Of the server's processes, those that have ended included. */
function serverTicks(postmaster: number): number {
  const statOf = (pid: string | number): string[] =>
    readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const own = statOf(postmaster);
  let ticks = Number(own[11]) + Number(own[12]) + Number(own[13]) + Number(own[14]);
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = statOf(name);
      if (Number(stat[1]) === postmaster) ticks += Number(stat[11]) + Number(stat[12]);
    } catch {
      // It ended meanwhile.
    }
  }
  return ticks;
}

type Statement = Readonly<{
  calls: string;
  rows: string;
  ms: number;
  blocks: string;
  wal: string;
  query: string;
}>;

async function readStatements(client: Client): Promise<readonly Statement[]> {
  const { rows } = await client.query<Statement>(
    `SELECT calls, rows, round(total_exec_time)::int AS ms, shared_blks_hit + shared_blks_read AS blocks,
            wal_bytes AS wal, left(regexp_replace(query, '\\s+', ' ', 'g'), 150) AS query
     FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' ORDER BY total_exec_time DESC LIMIT $1`,
    [statements],
  );
  return rows;
}

function print(seconds: number, before: Measured, after: Measured, top: readonly Statement[]): void {
  parts += 1;
  const kb = Math.round((after.wal - before.wal) / 1024);
  process.stdout.write(
    `cost ${parts}: ${seconds.toFixed(2)} s, this process ${Math.round(after.cpuMs - before.cpuMs)} ms, ` +
      `PostgreSQL ${Math.round(after.serverMs - before.serverMs)} ms, WAL ${kb} kB, ` +
      `${after.transactions - before.transactions} transactions\n`,
  );
  for (const { calls, rows, ms, blocks, wal, query } of top)
    process.stdout.write(
      `  ${String(ms).padStart(7)} ms ${calls.padStart(7)} calls ${rows.padStart(8)} rows ${blocks.padStart(9)} blocks ` +
        `${String(Math.round(Number(wal) / 1024)).padStart(7)} kB  ${query}\n`,
    );
}
