import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { createRetentionService } from './retention-service.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const soon = (): AbortSignal => AbortSignal.timeout(5000);
type Removed = Readonly<{ rows: number }>;
const nothing: Removed = { rows: 0 };

function watch(owner: string, remove: () => Promise<Removed> = async () => nothing) {
  const removed: Removed[] = [];
  const errors: unknown[] = [];
  const service = createRetentionService(createTestWorker(database.db, owner), {
    name: 'test.retention',
    retention: { remove },
    everyMs: 5,
    onRemoved: (each) => removed.push(each),
    onError: (error) => errors.push(error),
  });
  return { service, removed, errors };
}

test('one replica at a time walks, again and again, and tells what it has removed', async () => {
  const [one, two] = [watch('one'), watch('two')];
  await one.service.start();
  await eventually(() => assert.ok(one.removed.length > 0));
  await two.service.start();
  await eventually(() => assert.ok(one.removed.length > 5));
  assert.deepEqual([two.removed, one.errors, two.errors], [[], [], []]);
  await one.service.stop(soon());
  await two.service.stop(soon());
});

test('a walk that fails is told, and gives the lease back', async () => {
  const { service, errors } = watch('three', () => Promise.reject(new Error('the database is away')));
  await service.start();
  await eventually(() => assert.equal(errors.length, 1));
  const other = watch('four');
  await service.stop(soon());
  await other.service.start();
  await eventually(() => assert.ok(other.removed.length > 0));
  await other.service.stop(soon());
});
