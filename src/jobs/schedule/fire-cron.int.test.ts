import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connectTo, createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { CronJob } from '../domain/cron-schedule.ts';
import { fireTick, tickRetention, type FiredTick } from './cron-ticks.ts';
import { fireCron, openCronJobs } from './fire-cron.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

let names = 0;

/** A schedule with a new name. */
function cronJob(more: Partial<CronJob> = {}): CronJob {
  names += 1;
  return {
    name: `cron-${names}`,
    schedule: '* * * * *',
    timeZone: 'UTC',
    queue: `queue-${names}`,
    payload: { n: names },
    priority: 0,
    maxRetries: null,
    ...more,
  };
}

/** One round of a process; returns what it fired. */
async function look(jobs: readonly CronJob[], db: Database = database.db) {
  const fired: (FiredTick & Readonly<{ name: string; tickAt: Date }>)[] = [];
  const errors: unknown[] = [];
  const waitMs = await fireCron(
    {
      db,
      onFired: ({ name }, tickAt, tick) => fired.push({ name, tickAt, ...tick }),
      onError: (_job, error) => errors.push(error),
    },
    openCronJobs(jobs),
  );
  return { fired, errors, waitMs };
}

/** Moves all ticks of the schedule into the past; negative: into the future. */
async function age({ name }: CronJob, minutes: number): Promise<void> {
  await database.db.query(sql`
    UPDATE jobs.cron_ticks SET tick_at = tick_at - ${minutes} * interval '1 minute' WHERE name = ${name}`);
}

type TickRow = Readonly<{ tick_at: Date; job_id: string | null; schedule: string }>;

async function ticksOf({ name }: CronJob): Promise<readonly TickRow[]> {
  return database.db.query<TickRow>(sql`
    SELECT tick_at, job_id, schedule FROM jobs.cron_ticks WHERE name = ${name} ORDER BY tick_at`);
}

async function jobsOf({ queue }: CronJob): Promise<readonly { job_id: string; status: string }[]> {
  return database.db.query(sql`
    SELECT job_id, status, payload, priority, max_retries FROM jobs.job_queue WHERE queue = ${queue} ORDER BY job_id`);
}

test('the first round of a new schedule records it, and adds no job', async () => {
  const job = cronJob();
  const { fired, errors, waitMs } = await look([job]);
  assert.deepEqual([fired, errors, await jobsOf(job)], [[], [], []]);
  assert.ok(waitMs > 0 && waitMs <= 60_000);
  const [tick, ...more] = await ticksOf(job);
  assert.deepEqual([tick?.job_id, tick?.schedule, more], [null, '* * * * * UTC', []]);
});

test('a tick adds its configured job once', async () => {
  const job = cronJob({ priority: 7, maxRetries: 9, payload: [1, 'two', { three: null }] });
  await look([job]);
  await age(job, 1);
  const { fired } = await look([job]);
  assert.equal(fired.length, 1);
  assert.deepEqual(await jobsOf(job), [
    {
      job_id: fired[0]?.jobId,
      status: 'pending',
      payload: [1, 'two', { three: null }],
      priority: 7,
      max_retries: 9,
    },
  ]);
  const tick = (await ticksOf(job)).at(-1);
  assert.deepEqual([tick?.job_id, tick?.tick_at], [fired[0]?.jobId, fired[0]?.tickAt]);
  assert.equal((tick?.tick_at.getTime() ?? 1) % 60_000, 0);
});

test('after a week without a process only the latest tick is fired', async () => {
  const job = cronJob();
  await look([job]);
  await age(job, 7 * 24 * 60);
  const { fired } = await look([job]);
  assert.equal(fired.length, 1);
  assert.equal((await jobsOf(job)).length, 1);
});

test('of many concurrent processes one adds the job', async () => {
  const replicas = Array.from({ length: 4 }, () => connectTo(database.url, 2));
  try {
    for (let round = 0; round < 10; round += 1) {
      const jobs = [cronJob(), cronJob()];
      await look(jobs);
      for (const job of jobs) await age(job, 2);
      const looks = await Promise.all(replicas.map((db) => look(jobs, db)));
      assert.deepEqual(
        looks.flatMap((each) => each.errors),
        [],
      );
      const fired = looks.flatMap((each) =>
        each.fired.map(({ name, tickAt }) => `${name} ${tickAt.getTime()}`),
      );
      assert.equal(new Set(fired).size, fired.length);
      // A minute may end meanwhile; then there is one more tick.
      for (const job of jobs) {
        const ticks = (await ticksOf(job)).filter((tick) => tick.job_id !== null);
        const found = await jobsOf(job);
        assert.ok(found.length >= 1 && found.length <= ticks.length);
      }
    }
  } finally {
    await Promise.all(replicas.map((db) => db.end()));
  }
});

test('a clock that is set back fires nothing twice; one that was far ahead does not stop a schedule for ever', async () => {
  const job = cronJob();
  await look([job]);
  await age(job, 5);
  await look([job]);
  await age(job, -600);
  assert.deepEqual((await look([job])).fired, []);
  await age(job, -365 * 24 * 60);
  await look([job]);
  await database.db.query(sql`
    UPDATE jobs.cron_ticks SET tick_at = tick_at - interval '1 minute'
    WHERE name = ${job.name} AND tick_at < now() + interval '1 hour'`);
  assert.equal((await look([job])).fired.length, 1);
});

test('a tick older than a fired one is not fired, nor one that was decided long ago', async () => {
  const job = cronJob();
  await look([job]);
  await age(job, 60);
  await look([job]);
  const now = new Date();
  const earlier = new Date(Math.floor(now.getTime() / 60_000 - 5) * 60_000);
  assert.equal(await fireTick(database.db, job, { tickAt: earlier, decidedAt: now }), null);
  const other = cronJob();
  const tickAt = new Date(Math.floor(now.getTime() / 60_000) * 60_000);
  const decidedAt = new Date(now.getTime() - 60_000);
  assert.equal(await fireTick(database.db, other, { tickAt, decidedAt }), null);
  assert.notEqual(await fireTick(database.db, other, { tickAt, decidedAt: now }), null);
  assert.equal(await fireTick(database.db, other, { tickAt, decidedAt: now }), null);
});

test('a changed schedule starts anew, and the old one continues while a process has it', async () => {
  const old = cronJob({ schedule: '0 0 1 1 *' });
  await look([old]);
  await age(old, 400 * 24 * 60);
  const changed = { ...old, schedule: '* * * * *' };
  assert.deepEqual((await look([changed])).fired, []);
  assert.equal((await ticksOf(old)).length, 2);
  assert.equal((await look([old])).fired.length, 1);
  const moved = { ...changed, timeZone: 'Europe/Berlin' };
  assert.deepEqual((await look([moved])).fired, []);
});

test('two schedules with the same name and tick add one job', async () => {
  const [one, two] = [cronJob({ schedule: '* * * * *' }), cronJob({ schedule: '*/1 * * * *' })];
  const renamed = { ...two, name: one.name };
  await look([one]);
  await look([renamed]);
  await age(one, 3);
  const now = new Date();
  const tickAt = new Date(Math.floor(now.getTime() / 60_000) * 60_000);
  assert.notEqual(await fireTick(database.db, one, { tickAt, decidedAt: now }), null);
  assert.equal(await fireTick(database.db, renamed, { tickAt, decidedAt: now }), null);
});

test('while the job of an earlier tick is unstarted, later ticks add no job', async () => {
  const job = cronJob();
  await look([job]);
  await age(job, 5);
  const [first] = (await look([job])).fired;
  await age(job, 5);
  const [second] = (await look([job])).fired;
  assert.deepEqual([second?.jobId, second?.isNew], [first?.jobId, false]);
  assert.equal((await jobsOf(job)).length, 1);
  await database.db.query(sql`UPDATE jobs.job_queue SET status = 'running' WHERE job_id = ${first?.jobId}`);
  await age(job, 5);
  const [third] = (await look([job])).fired;
  assert.equal(third?.isNew, true);
  await age(job, 5);
  const [fourth] = (await look([{ ...job, payload: { changed: true } }])).fired;
  assert.equal(fourth?.isNew, true);
});

test('a job that was started and deferred, or is delayed, does not replace those of later ticks', async () => {
  for (const change of [
    sql`deferrals = 1`,
    sql`run_at = now() + interval '1 day', sort_at = now() + interval '1 day'`,
  ]) {
    const job = cronJob();
    await look([job]);
    await age(job, 5);
    const [first] = (await look([job])).fired;
    await database.db.query(sql`UPDATE jobs.job_queue SET ${change} WHERE job_id = ${first?.jobId}`);
    await age(job, 5);
    const [second] = (await look([job])).fired;
    assert.deepEqual([second?.isNew, second?.jobId === first?.jobId], [true, false]);
  }
});

test('a schedule whose job cannot be added does not affect the others, and its tick is not lost', async () => {
  const [bad, good] = [cronJob({ maxRetries: 0 }), cronJob()];
  await look([bad, good]);
  for (const job of [bad, good]) await age(job, 2);
  const { fired, errors } = await look([bad, good]);
  assert.deepEqual([fired.map(({ name }) => name), errors.length], [[good.name], 1]);
  const mended = { ...bad, maxRetries: 1 };
  assert.equal((await look([mended])).fired.length, 1);
});

test('the newest tick of a schedule stays, and those of the last day', async () => {
  await database.db.query(sql`TRUNCATE jobs.cron_ticks`);
  await database.db.query(sql`
    INSERT INTO jobs.cron_ticks (name, tick_at, schedule, fired_at)
    SELECT name, at, '* * * * * UTC', LEAST(at, now())
    FROM (VALUES ('often'), ('gone')) AS names (name),
         generate_series(now() - interval '20 days', now() - interval '8 days', interval '1 day') AS at
    UNION ALL
    SELECT 'often', at, '* * * * * UTC', at
    FROM generate_series(now() - interval '3 hours', now(), interval '1 hour') AS at
    UNION ALL
    SELECT 'rare', now() - interval '300 days', '0 0 1 1 * UTC', now() - interval '300 days'
    UNION ALL
    SELECT 'often', now() + interval '300 days', '* * * * * UTC', now()`);
  const task = tickRetention(database.db, [{ name: 'often' }, { name: 'rare' }], 5);
  assert.deepEqual(await task.run(new AbortController().signal), { ticks: 13 + 13 + 1 });
  const rows = await database.db.query<{ name: string; count: number }>(sql`
    SELECT name, count(*)::int AS count FROM jobs.cron_ticks GROUP BY name ORDER BY name`);
  assert.deepEqual(rows, [
    { name: 'often', count: 4 },
    { name: 'rare', count: 1 },
  ]);
});
