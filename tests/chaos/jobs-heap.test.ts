import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { good, openJobsScene, queueName } from './support/jobs-scene.ts';

test('a worker with little memory does hundreds of jobs whose payloads would fill it many times over', async (t) => {
  const at = await openJobsScene();
  t.after(() => at.close());
  // Short ones first: by their time it claims hundreds ahead.
  await at.enqueue(good(500));
  await at.db.query(sql`
    WITH large AS MATERIALIZED (
      SELECT jsonb_agg(jsonb_build_object('n', n)) AS ballast FROM generate_series(1, 65000) AS n)
    SELECT count(*) FROM large, generate_series(1, 120) AS i,
      LATERAL jobs.enqueue(${queueName}, jsonb_build_object('act', 'ok', 'i', i, 'ballast', large.ballast))`);
  await at.start({ CONCURRENCY: '4' }, ['--max-old-space-size=128']);
  await at.atRest(120_000);
  assert.equal(await at.count('completed'), 620);
});
