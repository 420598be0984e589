import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Answer } from '../../../tests/support/api-client.ts';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { startJobsSystem, type JobsSystem } from '../../../tests/support/jobs-system.ts';
import { startQueueWorker } from '../../../tests/support/queue-worker.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

type Readiness = Readonly<{ checks: Readonly<Record<string, Readonly<{ status: string }> | undefined>> }>;

async function statusOf({ system }: JobsSystem): Promise<string | undefined> {
  const { body }: Answer<Readiness> = await system.api.get<Readiness>('/readyz');
  return body.checks['jobs_push']?.status;
}

test('a process that does not push is degraded until another one does', async (t) => {
  const queues = { push: { target: { type: 'http', url: 'http://127.0.0.1:9/nobody' } } };
  const start = async (roles: string): Promise<JobsSystem> => {
    const jobs = await startJobsSystem({ queues, database, env: { ROLES: roles } });
    t.after(() => jobs.drop());
    return jobs;
  };
  const api = await start('api');
  assert.equal(await statusOf(api), 'degraded');
  const workers = await start('workers');
  assert.equal(await statusOf(workers), 'healthy');
  await eventually(async () => assert.equal(await statusOf(api), 'healthy'));
});

test('there is no check if no queue has a target', async (t) => {
  const jobs = await startJobsSystem({ database });
  t.after(() => jobs.drop());
  assert.equal(await statusOf(jobs), undefined);
});

test('a worker whose claims fail counts as not looking until they succeed', async (t) => {
  let isBroken = true;
  let failures = 0;
  const { runner } = await startQueueWorker(database, t, () => {}, {
    mayFail: true,
    wrapClaim: (claim) => async (options) => {
      if (!isBroken) return claim(options);
      failures += 1;
      throw new Error('no such column');
    },
  });
  const startedAtMs = runner.lookedAtMs();
  await eventually(() => assert.ok(failures >= 3));
  assert.equal(runner.lookedAtMs(), startedAtMs);
  isBroken = false;
  await eventually(() => assert.ok((runner.lookedAtMs() ?? 0) > (startedAtMs ?? Infinity)));
  await runner.stop(AbortSignal.timeout(5000));
  assert.equal(runner.lookedAtMs(), null);
});
