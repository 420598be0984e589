import { expect, test } from 'vitest';
import { accountOf, addsUp, sourcesOf, sourceTopicsOf, type Account, type Source } from './sources-of.ts';
import { rateText } from './topic-columns.tsx';

const source = (topic: string, partition: number, more: Partial<Source> = {}): Source => ({
  topic,
  partition,
  topic_id: 'a',
  cluster_id: 'c',
  position: 10,
  end: 12,
  lag: 2,
  owner: 'one',
  state: 'reading',
  last_error: null,
  last_error_at: null,
  stored_at: null,
  gaps: 0,
  first_offset: 0,
  high_offset: 10,
  last_seek: null,
  stable_end: 12,
  held_back_since: null,
  ...more,
});
const account = (topic: string, partition: number, balanced: boolean): Account =>
  ({ topic, partition, topic_id: 'a', balanced, lost: 3 }) as Account;

test('a topic that is read is as bad as its worst partition, and as far behind as all of them', () => {
  const all = sourceTopicsOf(
    [
      source('b', 0),
      source('a', 0),
      source('a', 1, { state: 'stopped', lag: 5 }),
      source('a', 2, { state: 'gone', lag: null }),
    ],
    [account('a', 0, true), account('a', 1, false)],
  );
  expect(all.map(({ topic, state, lag, isBalanced, lost }) => [topic, state, lag, isBalanced, lost])).toEqual(
    [
      ['a', 'stopped', 7, false, 6],
      ['b', 'reading', 2, null, 0],
    ],
  );
});

test('a lag that is not known is not added up as zero, and no account is not one that adds up', () => {
  const all = sourceTopicsOf([source('a', 0, { lag: null }), source('a', 1)], []);
  expect(all[0]?.lag).toBeNull();
  expect(addsUp(all)).toBeNull();
  expect(addsUp(sourceTopicsOf([source('a', 0)], [account('a', 0, true)]))).toBe(true);
});

test('the sources of a topic are where its messages came from, or itself', () => {
  const all = sourceTopicsOf([source('orders.dlq', 0), source('other.dlq', 0)], []);
  const names = (topic: string, from: readonly string[]) =>
    sourcesOf(topic, from, all).map((one) => one.topic);
  expect(names('orders', ['orders.dlq'])).toEqual(['orders.dlq']);
  expect(names('other.dlq', [])).toEqual(['other.dlq']);
  expect(names('orders', [])).toEqual([]);
});

test('a topic that was created again has an account of its own', () => {
  const again = { ...account('a', 0, true), topic_id: 'b' };
  expect(accountOf(source('a', 0, { topic_id: 'b' }), [account('a', 0, false), again])).toBe(again);
});

test('rates are whole where they are large', () => {
  expect([0, 0.4, 1, 12.6, 1234].map(rateText)).toEqual(['0', '0.4', '1', '13', '1\u202f234']);
});
