import {
  findPgBouncer,
  startPgBouncer,
  type PgBouncer,
  type PgBouncerOptions,
} from '../../tools/pgbouncer/start-pgbouncer.ts';

const program = findPgBouncer();
const missing = 'PgBouncer is not installed (Debian: apt-get install pgbouncer)';

if (program === undefined) {
  process.stderr.write(`\n*** THE PGBOUNCER TESTS ARE SKIPPED: ${missing} ***\n\n`);
  if (process.env['CI'] === 'true') throw new Error(missing);
}

/** Options for tests that need a real PgBouncer: skipped, with the reason, where there is none. */
export const needsPgBouncer = program === undefined ? { skip: missing } : {};

/** In front of the PostgreSQL of the test run. */
export async function startTestPgBouncer(options?: PgBouncerOptions): Promise<PgBouncer> {
  const serverUrl = process.env['TEST_POSTGRES_URL'];
  if (program === undefined || serverUrl === undefined) throw new Error(missing);
  return startPgBouncer(program, serverUrl, options);
}
