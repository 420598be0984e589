import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runDeepQueue } from '../soak/deep-queue.ts';
import { startRestartablePostgres } from './support/restartable-postgres.ts';

it('fifty thousand jobs that wait keep nobody else waiting, and none is lost or done twice when workers and the database die', async (t) => {
  const postgres = await startRestartablePostgres();
  t.after(() => postgres.stop());
  const breaches = await runDeepQueue({
    postgres,
    jobs: 50_000,
    drained: 1500,
    times: 3,
    patience: 8,
    withinMs: 90_000,
    say: (line) => t.diagnostic(line),
  });
  assert.deepEqual(breaches, []);
});
