import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { createGauges } from './gauges.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const soon = (): AbortSignal => AbortSignal.timeout(5000);

/** Exports the depth of each queue that `measure` returns, and their number. */
function watch(owner: string, measure: () => Promise<Readonly<Record<string, number>>>) {
  const metrics = createMetrics();
  const depth = metrics.gauge({ name: 'test_depth', help: 'Depth.', labelNames: ['queue'] });
  const queues = metrics.gauge({ name: 'test_queues', help: 'Queues.' });
  const warnings: string[] = [];
  const service = createGauges(createTestWorker(database.db, owner), {
    name: 'test.gauges',
    gauges: [depth, queues],
    everyMs: 5,
    async measure() {
      const found = Object.entries(await measure());
      return () => {
        for (const [queue, count] of found) depth.inc({ queue }, count);
        queues.set(found.length);
      };
    },
    log: { warn: (_facts, message) => warnings.push(message) },
  });
  const series = async (): Promise<readonly string[]> =>
    (await metrics.render()).split('\n').filter((line) => line.startsWith('test_'));
  return { service, series, warnings };
}

test('one replica exports series; without the lease, and after it, there are none', async () => {
  const [one, two] = [watch('one', async () => ({ mail: 3 })), watch('two', async () => ({ mail: 3 }))];
  assert.deepEqual(await one.series(), []);
  const exported = ['test_depth{queue="mail"} 3', 'test_queues 1'];
  await one.service.start();
  await eventually(async () => assert.deepEqual(await one.series(), exported));
  await two.service.start();
  assert.deepEqual(await two.series(), []);
  await one.service.stop(soon());
  assert.deepEqual(await one.series(), []);
  await two.service.stop(soon());
});

test('every round replaces all series, so that those of deleted queues disappear', async () => {
  let found: Readonly<Record<string, number>> = { mail: 1, sms: 2 };
  const { service, series } = watch('one', async () => found);
  await service.start();
  await eventually(async () =>
    assert.deepEqual(await series(), [
      'test_depth{queue="mail"} 1',
      'test_depth{queue="sms"} 2',
      'test_queues 2',
    ]),
  );
  found = { sms: 2 };
  await eventually(async () =>
    assert.deepEqual(await series(), ['test_depth{queue="sms"} 2', 'test_queues 1']),
  );
  await service.stop(soon());
});

test('a failed measurement is logged and leaves no old series behind', async () => {
  let isFailing = false;
  const { service, series, warnings } = watch('one', async () => {
    if (isFailing) throw new Error('no');
    return { mail: 1 };
  });
  await service.start();
  await eventually(async () => assert.equal((await series()).length, 2));
  isFailing = true;
  await eventually(async () => assert.deepEqual(await series(), []));
  await eventually(() => assert.deepEqual(warnings, ['failed to measure gauges']));
  await service.stop(soon());
});
