import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTargetRule } from './target-rule.ts';

const isDeadLetterTopic = (topic: string): boolean => topic.endsWith('.dlq');

test('without patterns every topic is allowed, except dead-letter topics and internal ones', () => {
  const isAllowed = createTargetRule({ patterns: undefined, isDeadLetterTopic });
  for (const topic of ['orders', 'payments.v1', 'a_b-c']) assert.ok(isAllowed(topic), topic);
  for (const topic of ['orders.dlq', '__consumer_offsets', 'no topic', '', '..'])
    assert.ok(!isAllowed(topic), topic);
});

test('patterns allow the topics they match, but never a dead-letter topic or an internal one', () => {
  const isAllowed = createTargetRule({ patterns: ['orders.*', '__*', '*.dlq'], isDeadLetterTopic });
  assert.ok(isAllowed('orders.v1'));
  for (const topic of ['payments.v1', 'orders', 'orders.dlq', '__orders'])
    assert.ok(!isAllowed(topic), topic);
});
