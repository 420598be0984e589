import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { glob } from 'node:fs/promises';
import { startEmbeddedPostgres } from '../src/platform/embedded/embedded-postgres.ts';
import { buildConsole } from '../src/console/assets/build-console.ts';
import { makeTemplateDatabase } from '../tests/support/database.ts';
import { buildGoTools, whyNoGoTools } from './go/go-tools.ts';
import { kafkaAvailability, startKafka } from './kafka/start-kafka.ts';
import { findPgBouncer, startPgBouncer } from './pgbouncer/start-pgbouncer.ts';
import { needsSessions } from './pgbouncer/needs-sessions.ts';
import { readOptions, runTestFiles, runUnitTests } from './run-test-files.ts';
import { longestFirst } from './test-order.ts';

/**
 * `npm test`: starts a real PostgreSQL 17 and a real Kafka 4 on free loopback ports, runs every test against
 * them, and leaves nothing running. `npm test -- src/dlq` runs only the files below a path, or those named.
 *
 * `npm test -- --through-pgbouncer` runs the integration and end-to-end tests with the servers' pools going through a real
 * PgBouncer in transaction mode, LISTEN and migrations past it; `--through-pgbouncer=poll` without a way past it.
 */
const everything = ['src/**/*.test.ts', 'tools/**/*.test.ts', 'tests/**/*.test.ts', 'examples/**/*.test.ts'];

const throughPooler = ['src/**/*.int.test.ts', 'tests/e2e/**/*.test.ts'];
const poolerOption = '--through-pgbouncer';

const runMinutes = 40;
/** Every transaction takes longer, and this run is not for everyday. */
const poolerRunMinutes = 60;

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const pooler = args.find((arg) => arg === poolerOption || arg === `${poolerOption}=poll`);
  const { options, paths } = readOptions(args.filter((arg) => arg !== pooler));
  const files = await findFiles(paths, pooler === undefined ? everything : throughPooler);
  if (files.length === 0) {
    process.stderr.write('no test file matches\n');
    return 1;
  }
  const units = files.filter(isUnitTest);
  const others = longestFirst(files.filter((file) => !isUnitTest(file) && !isSkipped(file, pooler)));
  const stops = [await provideCompileCache(process.env)];
  const ending = endingAfter(pooler === undefined ? runMinutes : poolerRunMinutes);
  try {
    // The servers start meanwhile.
    const unitRun = units.length === 0 ? 0 : runUnitTests(units, options, ending.signal);
    const isReady = others.length === 0 || (await provideServers(others, pooler, stops));
    const unitCode = await unitRun;
    if (!isReady || ending.signal.aborted) return 1;
    if (others.length === 0) return unitCode;
    return Math.max(unitCode, await runTestFiles(others, options, ending.signal));
  } finally {
    ending.clear();
    for (const stop of stops.toReversed()) await stop();
  }
}

/** Sets the variables by which tests find the servers. False if a server is missing that must be there. */
async function provideServers(
  files: readonly string[],
  pooler: string | undefined,
  stops: (() => Promise<void>)[],
): Promise<boolean> {
  const { env } = process;
  const built = provideConsole();
  stops.push(await providePostgres(env));
  await built;
  if (pooler !== undefined) stops.push(await providePooler(env, pooler.endsWith('=poll')));
  if (files.some((file) => file.startsWith('tests/deploy/'))) await provideGoTools();
  const kafka = await provideKafka(env);
  if (kafka !== 'missing') stops.push(kafka);
  return kafka !== 'missing' || env['CI'] !== 'true';
}

/** A test that fails before it stops its server keeps its file running; the run must end all the same. */
function endingAfter(minutes: number): Readonly<{ signal: AbortSignal; clear(): void }> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  process.on('SIGINT', end).on('SIGTERM', end);
  const watchdog = setTimeout(() => {
    process.stderr.write(`\nthe tests did not end within ${minutes} minutes\n`);
    end();
  }, minutes * 60_000);
  return { signal: ending.signal, clear: () => clearTimeout(watchdog) };
}

function isSkipped(file: string, pooler: string | undefined): boolean {
  if (pooler === undefined || !(file in needsSessions)) return false;
  process.stderr.write(`not through PgBouncer: ${file}: ${needsSessions[file]}\n`);
  return true;
}

function isUnitTest(file: string): boolean {
  return !file.endsWith('.int.test.ts') && !file.startsWith('tests/');
}

async function findFiles(paths: readonly string[], otherwise: readonly string[]): Promise<readonly string[]> {
  const patterns =
    paths.length === 0
      ? otherwise
      : paths.map((path) => (path.endsWith('.ts') ? path : `${path.replace(/\/$/, '')}/**/*.test.ts`));
  const files: string[] = [];
  for await (const file of glob(patterns)) files.push(file);
  return files.toSorted();
}

/** The processes of a run load the same files hundreds of times. */
async function provideCompileCache(env: NodeJS.ProcessEnv): Promise<() => Promise<void>> {
  if (env['NODE_COMPILE_CACHE'] !== undefined) return async () => {};
  const folder = await mkdtemp(join(tmpdir(), 'redrive-compiled-'));
  env['NODE_COMPILE_CACHE'] = folder;
  return () => rm(folder, { recursive: true, force: true });
}

async function providePostgres(env: NodeJS.ProcessEnv): Promise<() => Promise<void>> {
  if (env['TEST_POSTGRES_URL'] !== undefined) {
    await makeTemplateDatabase(env['TEST_POSTGRES_URL']);
    return async () => {};
  }
  const folder = await mkdtemp(join(tmpdir(), 'redrive-test-'));
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    // Tests that kill PostgreSQL start their own, with these on.
    settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '300' },
  });
  env['TEST_POSTGRES_URL'] = postgres.url;
  await makeTemplateDatabase(postgres.url);
  return async () => {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
    if (!postgres.folder.startsWith(folder)) await rm(postgres.folder, { recursive: true, force: true });
  };
}

async function providePooler(env: NodeJS.ProcessEnv, polls: boolean): Promise<() => Promise<void>> {
  const program = findPgBouncer();
  if (program === undefined)
    throw new Error('PgBouncer is not installed (Debian: apt-get install pgbouncer)');
  const pooler = await startPgBouncer(program, env['TEST_POSTGRES_URL'] ?? '');
  env['TEST_POOLER_URL'] = pooler.urlOf(env['TEST_POSTGRES_URL'] ?? '');
  env['TEST_POOLER_WAKE'] = polls ? 'poll' : 'listen';
  return async () => {
    const connections = pooler.log().match(/login attempt/g)?.length ?? 0;
    process.stderr.write(`${connections} connections went through PgBouncer\n`);
    await pooler.stop();
  };
}

/** Built once, so that no server of a test builds it. If that fails, the tests of the console say why. */
async function provideConsole(): Promise<void> {
  await buildConsole().catch((error: unknown) => void process.stderr.write(`${String(error)}\n`));
}

/** Without Go, the tests that need them say so and are skipped. */
async function provideGoTools(): Promise<void> {
  if ((await whyNoGoTools()) === undefined)
    await buildGoTools((line) => void process.stderr.write(`${line}\n`));
}

async function provideKafka(env: NodeJS.ProcessEnv): Promise<(() => Promise<void>) | 'missing'> {
  if (env['KAFKA_BROKERS']) return async () => {};
  const availability = await kafkaAvailability();
  if (!availability.available) {
    process.stderr.write(`\n*** THE KAFKA TESTS ARE SKIPPED: ${availability.reason} ***\n\n`);
    return 'missing';
  }
  const kafka = await startKafka();
  env['KAFKA_BROKERS'] = kafka.brokers;
  env['TEST_KAFKA_SASL_BROKERS'] = kafka.saslBrokers;
  env['TEST_KAFKA_SSL_BROKERS'] = kafka.sslBrokers;
  env['TEST_KAFKA_SASL_SSL_BROKERS'] = kafka.saslSslBrokers;
  return () => kafka.stop();
}
