import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLoop } from '../../kernel/loop.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { createWorkWatch } from './work-watch.ts';

const series = async (metrics: ReturnType<typeof createMetrics>, name: string): Promise<readonly string[]> =>
  (await metrics.render()).split('\n').filter((line) => line.startsWith(name));

test('what is known is 0 from the start, so that the first event is an increase', async () => {
  const metrics = createMetrics();
  createWorkWatch(metrics, ['dlq', 'jobs']);
  assert.deepEqual(await series(metrics, 'redrive_leases_reaped_total'), [
    'redrive_leases_reaped_total{slice="dlq"} 0',
    'redrive_leases_reaped_total{slice="jobs"} 0',
  ]);
  assert.equal((await series(metrics, 'redrive_stale_writes_total')).length, 2);
  assert.equal((await series(metrics, 'redrive_claim_duration_seconds_count')).length, 2);
});

test('a loop is alive after a round without an error, and no longer after rounds that fail', async () => {
  const beats: string[] = [];
  let rounds = 0;
  const ended = Promise.withResolvers<void>();
  const loop = createLoop({
    name: 'test',
    everyMs: 0,
    async run() {
      rounds += 1;
      if (rounds === 4) ended.resolve();
      if (rounds >= 2) throw new Error('no');
    },
    beat: () => void beats.push(`beat ${rounds}`),
    onError: () => {},
  });
  await loop.start();
  await ended.promise;
  await loop.stop(AbortSignal.timeout(1000));
  assert.deepEqual(beats, ['beat 0', 'beat 1']);
});

test('a beat is exported as the time of the last success', async () => {
  const metrics = createMetrics();
  const before = Date.now() / 1000;
  createWorkWatch(metrics, []).beat('jobs', 'reaper');
  const [line = ''] = await series(metrics, 'redrive_loop_last_success_timestamp_seconds');
  assert.match(line, /\{slice="jobs",loop="reaper"\}/);
  assert.ok(Number(line.split(' ').at(-1)) >= before);
});
