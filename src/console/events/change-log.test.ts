import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createChangeLog } from './change-log.ts';

const changes = (slice: string) => new Map([[slice, { rows: new Map([['1', 'a']]), isComplete: true }]]);
const numbers = (sets: ReturnType<ReturnType<typeof createChangeLog>['since']>) => sets?.map(({ n }) => n);

test('a client that comes back gets what it has missed', () => {
  const log = createChangeLog('p', 3);
  const begin = log.lastId();
  log.add(changes('dlq'));
  const then = log.lastId();
  log.add(changes('jobs'));
  assert.deepEqual(numbers(log.since(begin)), [1, 2]);
  assert.deepEqual(numbers(log.since(then)), [2]);
  assert.deepEqual(numbers(log.since(log.lastId())), []);
});

test('what is too long ago, of another process or not an id at all is not known', () => {
  const log = createChangeLog('p', 3);
  const begin = log.lastId();
  for (let i = 0; i < 4; i += 1) log.add(changes('dlq'));
  assert.deepEqual(numbers(log.since('p-1')), [2, 3, 4]);
  for (const id of [begin, 'q-2', 'p-5', 'p-', 'p', '', 'p--1', 'p-1e3', `p-${'9'.repeat(30)}`])
    assert.equal(log.since(id), null, id);
});

test('after a time without streams nothing from before is continued', () => {
  const log = createChangeLog('p');
  log.add(changes('dlq'));
  const before = log.lastId();
  log.interrupt();
  assert.equal(log.since(before), null);
  assert.deepEqual(log.since(log.lastId()), []);
});
