import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '../../tests/support/database.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { stopAll } from '../kernel/service.ts';
import { sql } from '../platform/postgres/sql.ts';
import type { JobEvent } from './job-event.ts';
import { createRuntime } from './jobs-runtime.ts';

test('each released job of a lost worker is an event, whatever its queue, with its outcome and error', async (t) => {
  const database = await createTestDatabase();
  t.after(() => database.drop());
  const events: JobEvent[] = [];
  const { services } = createRuntime(database.db, {
    listen: false,
    leaseMs: 30_000,
    pollMs: 1000,
    emit: (event) => void events.push(event),
  });
  const lost = await database.db.query<{ id: string }>(sql`
    INSERT INTO jobs.job_queue (queue, payload, status, retry_count, max_retries, lease_owner, lease_until)
    SELECT queue, '{}', 'running', retry_count, 3, 'somebody', now() - interval '1 minute'
    FROM (VALUES ('mail', 0), ('mail', 2), ('other', 2)) AS lost (queue, retry_count)
    RETURNING job_id AS id`);
  for (const service of services) await service.start();
  t.after(() => stopAll(services, 5000));
  await eventually(() => assert.equal(events.length, 3));
  const error = 'the worker was lost while it ran the job';
  const reapedEvent = (n: number, queue: string, outcome: 'failed' | 'dead_letter'): JobEvent => ({
    type: 'reaped',
    queue,
    jobId: lost[n]?.id ?? assert.fail(),
    outcome,
    error,
  });
  const expected = [
    reapedEvent(0, 'mail', 'failed'),
    reapedEvent(1, 'mail', 'dead_letter'),
    reapedEvent(2, 'other', 'dead_letter'),
  ];
  const byId = (all: readonly JobEvent[]): unknown => all.map((each) => JSON.stringify(each)).toSorted();
  assert.deepEqual(byId(events), byId(expected));
});
