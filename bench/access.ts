import { loadConfig } from '../src/config/config.ts';
import { startSystem, type System } from '../src/compose.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { createLogger } from '../src/platform/telemetry/logger.ts';
import { audience, startIssuer } from '../tests/support/issuer.ts';
import { openPostgres } from './support.ts';

/**
 * What authentication adds to a request: the same list of jobs from a server without it (the floor), and from one with
 * it, by token, by API key, and by a token with a narrowed role. Both servers run on one database, and the requests take
 * turns. node bench/access.ts [rounds]
 */
const rounds = Number(process.argv[2] ?? 400);
const warmUp = 50;
const queues = 10;
const jobs = 20_000;

const postgres = await openPostgres();
const issuer = await startIssuer(['sys_admin']);
const logger = createLogger({ service: 'bench', version: '0', environment: 'bench', level: 'error' });

const start = (env: Readonly<Record<string, string>>): Promise<System> =>
  startSystem(
    loadConfig({
      env: { DATABASE_URL: postgres.url, PORT: '0', ROLES: 'api', KAFKA_ENABLED: 'false', ...env },
      secretsDir: '/nonexistent',
    }),
    { onPortTaken: 'fail', logger },
  );

const open = await start({});
const guarded = await start({
  AUTH_JWT_ISSUER: issuer.url,
  AUTH_JWT_AUDIENCE: audience,
  AUTH_API_KEYS_ENABLED: 'true',
  AUTH_ROLES: JSON.stringify({ narrow: { extends: 'sys_admin', queues: ['queue-*'] } }),
  AUTH_BINDINGS: JSON.stringify(
    ['sys_admin', 'narrow'].map((role) => ({ role, subjects: [`role:${role}`] })),
  ),
});
try {
  await postgres.db.query(sql`
    INSERT INTO jobs.job_queue (queue, payload)
    SELECT 'queue-' || i % ${queues}, '{"n": 1}' FROM generate_series(1, ${jobs}) AS i`);
  await postgres.db.query(sql`VACUUM ANALYZE jobs.job_queue`);
  const [token, narrowed] = [await issuer.sign(), await issuer.sign({ roles: ['narrow'] })];
  const made = await fetch(`${guarded.url}/api/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bench', role: 'sys_admin' }),
  });
  const { key } = (await made.json()) as { key: string };
  const callers = [
    { name: 'without authentication (floor)', url: open.url, token: '' },
    { name: 'with a token', url: guarded.url, token },
    { name: 'with an API key', url: guarded.url, token: key },
    { name: 'with a token, narrowed to queues', url: guarded.url, token: narrowed },
  ];
  for (const path of ['/api/v1/jobs?page_size=20', '/api/v1/jobs/queues']) {
    process.stdout.write(`\nGET ${path}, ${jobs} jobs, ${rounds} rounds in turns\n`);
    report(await measure(callers, path), callers);
  }
} finally {
  await guarded.stop();
  await open.stop();
  await issuer.stop();
  await postgres.stop();
}

type Caller = Readonly<{ name: string; url: string; token: string }>;

async function measure(callers: readonly Caller[], path: string): Promise<readonly (readonly number[])[]> {
  const times = callers.map((): number[] => []);
  for (let round = -warmUp; round < rounds; round += 1)
    for (const [i, { url, token }] of callers.entries()) {
      const begin = performance.now();
      const answer = await fetch(`${url}${path}`, {
        headers: token === '' ? {} : { authorization: `Bearer ${token}` },
      });
      await answer.text();
      if (answer.status !== 200) throw new Error(`${path}: status ${answer.status}`);
      if (round >= 0) times[i]?.push(performance.now() - begin);
    }
  return times.map((each) => each.toSorted((a, b) => a - b));
}

function report(times: readonly (readonly number[])[], callers: readonly Caller[]): void {
  const at = (each: readonly number[] = [], share: number): number =>
    each[Math.floor(each.length * share)] ?? 0;
  const floor = at(times[0], 0.5);
  callers.forEach(({ name }, i) => {
    const [p50, p95] = [at(times[i], 0.5), at(times[i], 0.95)];
    const ratio = (p50 / floor).toFixed(2);
    process.stdout.write(
      `  ${name.padEnd(34)} p50 ${p50.toFixed(2).padStart(7)} ms   p95 ${p95.toFixed(2).padStart(7)} ms   ${ratio} of the floor\n`,
    );
  });
}
