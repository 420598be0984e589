import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { root, startJobsSystem, type JobsSystem } from '../support/jobs-system.ts';

type Schedule = Readonly<{
  name: string;
  schedule: string;
  time_zone: string;
  queue: string;
  known: boolean;
  next_at: string | null;
  due_at: string | null;
  last: Readonly<{ tick_at: string; job_id: string; status: string | null }> | null;
}>;

const cron = {
  hourly: { schedule: '0 * * * *', time_zone: 'Europe/Berlin', queue: 'reports' },
  yearly: { schedule: '0 0 1 1 *', queue: 'mail' },
};

describe('schedules', () => {
  let database: TestDatabase;
  let jobs: JobsSystem;
  before(async () => {
    database = await createTestDatabase();
    // Nobody fires them, so that the test decides what has happened.
    jobs = await startJobsSystem({ database, cron, env: { ROLES: 'api' } });
  });
  after(async () => {
    await jobs.drop();
    await database.drop();
  });

  const list = async (): Promise<readonly Schedule[]> => {
    const { status, body, text } = await jobs.system.api.get<{ schedules: readonly Schedule[] }>(
      `${root}/schedules`,
    );
    assert.equal(status, 200, text);
    return body.schedules;
  };
  const hourly = async (): Promise<Schedule> => {
    const found = (await list()).find(({ name }) => name === 'hourly');
    assert.ok(found);
    return found;
  };
  const scheduleText = '0 * * * * Europe/Berlin';

  test('one that no worker has seen says so, and when its next tick is', async () => {
    const [one, other] = await list();
    assert.deepEqual([one?.name, other?.name], ['hourly', 'yearly']);
    assert.deepEqual([one?.known, one?.due_at, one?.last], [false, null, null]);
    const aheadMs = Date.parse(one?.next_at ?? '') - Date.now();
    assert.ok(aheadMs > -1000 && aheadMs <= 3_600_000, one?.next_at ?? 'none');
    assert.match(other?.next_at ?? '', /-01-01T00:00:00/);
  });

  test('a tick that has come and was not fired is told, and one that was fired has its job', async () => {
    await database.db.query(sql`
      INSERT INTO jobs.cron_ticks (name, tick_at, schedule)
      VALUES ('hourly', date_trunc('hour', now()) - interval '3 hours', ${scheduleText})`);
    const due = await hourly();
    assert.deepEqual([due.known, due.last], [true, null]);
    assert.ok(Date.now() - Date.parse(due.due_at ?? '') < 3_700_000, due.due_at ?? 'none');
    const { body } = await jobs.system.api.post<{ job_id: string }>(root, { queue: 'reports', payload: {} });
    await database.db.query(sql`
      INSERT INTO jobs.cron_ticks (name, tick_at, schedule, job_id)
      VALUES ('hourly', ${due.due_at}, ${scheduleText}, ${body.job_id})`);
    await eventually(async () => {
      const fired = await hourly();
      assert.equal(fired.due_at, null);
      assert.deepEqual([fired.last?.job_id, fired.last?.status], [body.job_id, 'pending']);
    });
    await database.db.query(sql`DELETE FROM jobs.job_queue WHERE job_id = ${body.job_id}`);
    const gone = await hourly();
    assert.deepEqual([gone.last?.job_id, gone.last?.status], [body.job_id, null]);
  });

  test('lists show the fields that are asked for, and when they were read', async () => {
    await jobs.system.api.post(root, { queue: 'mail', payload: { big: true } });
    type List = Readonly<{ jobs: readonly object[]; as_of: string }>;
    const { body } = await jobs.system.api.get<List>(`${root}?queue=mail&fields=queue&fields=status`);
    assert.deepEqual(Object.keys(body.jobs[0] ?? {}).toSorted(), ['job_id', 'queue', 'status']);
    assert.ok(Math.abs(Date.parse(body.as_of) - Date.now()) < 60_000);
    assert.equal((await jobs.system.api.get(`${root}?fields=secret`)).status, 400);
    type Facets = Readonly<{ facets: { status: readonly { value: string; count: number }[] } }>;
    const facets = await jobs.system.api.get<Facets>(`${root}/facets?queue=mail`);
    assert.deepEqual(
      facets.body.facets.status.map(({ value, count }) => [value, count]),
      [
        ['pending', 1],
        ['running', 0],
        ['completed', 0],
        ['failed', 0],
        ['dead_letter', 0],
      ],
    );
  });
});
