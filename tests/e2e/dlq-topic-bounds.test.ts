import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { runRedrive } from '../support/run-redrive.ts';

/** Headers choose the names of topics: neither lists nor figures grow without end, and both say so. */

const topics = 10_050;

let system: TestSystem;
before(async () => {
  system = await startTestSystem();
  await system.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, status)
    SELECT 'chosen-' || lpad((n % ${topics})::text, 5, '0'), 'boom', CASE WHEN n % 3 = 0 THEN 'DEAD' ELSE 'PENDING' END
    FROM generate_series(1, ${topics + 7}) AS n`);
});
after(() => system.drop());

test('two hundred topics have series of their own, the others share one, and the sum is right', async () => {
  const series = await eventually(async () => {
    const { text } = await system.api.get('/metrics');
    const found = [...text.matchAll(/^dlq_messages\{status="(\w+)",topic="([^"]+)"\} (\d+)$/gm)];
    assert.ok(found.length > 0);
    return found.map(([, status, topic, count]) => ({ status, topic, count: Number(count) }));
  });
  const names = new Set(series.map(({ topic }) => topic));
  assert.deepEqual([names.size, names.has('other'), series.length], [201, true, 804]);
  const sumOf = (wanted: string): number =>
    series.filter(({ status }) => status === wanted).reduce((sum, { count }) => sum + count, 0);
  const dead = Math.floor((topics + 7) / 3);
  assert.deepEqual([sumOf('DEAD'), sumOf('PENDING')], [dead, topics + 7 - dead]);
  // The ones with the most messages are named.
  for (let n = 1; n <= 7; n += 1) assert.ok(names.has(`chosen-0000${n}`));
});

test('the list of topics says that it is cut, over HTTP and in the command line', async () => {
  const { body } = await system.api.get<{ topics: unknown[]; truncated?: true }>('/api/v1/dlq');
  assert.deepEqual([body.topics.length, body.truncated], [10_000, true]);
  const { code, err } = await runRedrive(['dlq', 'topics'], { REDRIVE_URL: system.url });
  assert.equal(code, 0);
  assert.match(err, /only the first 10000 topics are shown/);

  await system.db.query(sql`DELETE FROM dlq.dlq_messages WHERE original_topic > 'chosen-00002'`);
  const short = await system.api.get<{ topics: unknown[] }>('/api/v1/dlq');
  assert.deepEqual(Object.keys(short.body), ['topics', 'as_of']);
  assert.equal(short.body.topics.length, 3);
});
