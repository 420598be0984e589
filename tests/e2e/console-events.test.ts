import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { readEvents, type EventReader, type ServerEvent } from '../support/event-reader.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

let system: TestSystem;
before(async () => void (system = await startTestSystem({ kafka: 'local' })));
after(() => system.drop());

async function follow(t: TestContext, headers = {}): Promise<EventReader> {
  const reader = await readEvents(system.url, headers);
  t.after(() => reader.close());
  assert.equal(reader.status, 200);
  return reader;
}

const changeOf =
  (slice: string, id?: string) =>
  ({ event, data }: ServerEvent): boolean =>
    event === 'change' &&
    data['slice'] === slice &&
    (id === undefined || (data['ids'] as readonly string[]).includes(id));

test('a job that is added by another client is an event with its id', async (t) => {
  const reader = await follow(t);
  await reader.until(({ event }) => event === 'resync');
  const [row] = await system.db.query<{ id: string }>(sql`
    INSERT INTO jobs.job_queue (queue, payload) VALUES ('mail', '{}') RETURNING job_id AS id`);
  const event = await reader.until(changeOf('jobs', row?.id));
  assert.deepEqual(event.data['many'], false);
});
