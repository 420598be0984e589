import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLegalTopic } from './legal-topic.ts';

test('a legal topic has a name that Kafka accepts and that is not internal', () => {
  for (const name of ['orders', 'Orders_2.events-v1', '_x', '...', 'a'.repeat(249)])
    assert.ok(isLegalTopic(name), name);
  for (const name of [
    '',
    '.',
    '..',
    '__consumer_offsets',
    'a b',
    'a/b',
    'a\n',
    'ä',
    'a\0',
    '*',
    'a'.repeat(250),
  ])
    assert.ok(!isLegalTopic(name), name);
});
