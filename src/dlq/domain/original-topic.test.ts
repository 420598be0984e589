import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  resolveOriginalTopic,
  routeByRules,
  type OriginalTopic,
  type OriginalTopicQuestion,
} from './original-topic.ts';
import { compileGlobs } from '../../kernel/glob/match-glob.ts';
import { isLegalTopic } from './legal-topic.ts';

const isDeadLetterTopic = compileGlobs(['*.dlq.v1', '*.dlq', '*-dlt', '*.DLT']);

const resolve = (question: Partial<OriginalTopicQuestion> & { sourceTopic: string }): OriginalTopic =>
  resolveOriginalTopic({ headerTopic: undefined, rules: [], isDeadLetterTopic, ...question });

const unroutable = (topic: string): OriginalTopic => ({ topic, unroutable: true, by: 'none' });

test('the topic in the headers comes first', () => {
  const rules = [{ match: '*', topic: 'ruled' }];
  assert.deepEqual(resolve({ headerTopic: 'payments.v2', sourceTopic: 'orders.dlq', rules }), {
    topic: 'payments.v2',
    unroutable: false,
    by: 'headers',
  });
});

test('a dead-letter topic in the headers is ignored', () => {
  for (const headerTopic of ['orders.dlq.v1', 'orders-dlt'])
    assert.deepEqual(resolve({ headerTopic, sourceTopic: 'orders.dlq' }), {
      topic: 'orders',
      unroutable: false,
      by: 'naming',
    });
});

test('an illegal topic name in the headers leaves the message unroutable', () => {
  for (const headerTopic of ['', 'a b', '__consumer_offsets', '..', 'x'.repeat(250)])
    assert.deepEqual(resolve({ headerTopic, sourceTopic: 'orders.dlq' }), unroutable('orders.dlq'));
  const rules = [{ match: 'orders.dlq', topic: 'orders.v2' }];
  assert.equal(routeByRules({ deadLetterTopic: 'orders.dlq', rules, isDeadLetterTopic }), 'orders.v2');
  assert.equal(routeByRules({ deadLetterTopic: 'orders.dlq', rules: [], isDeadLetterTopic }), null);
});

test('the first matching rule decides, before the name of the topic', () => {
  const rules = [
    { match: 'payments.dlq', topic: 'payments.commands.v3' },
    { match: '*.dlq', topic: '*.events.v1' },
    { match: '*', topic: 'never' },
  ];
  assert.deepEqual(resolve({ sourceTopic: 'payments.dlq', rules }), {
    topic: 'payments.commands.v3',
    unroutable: false,
    by: 'rule',
  });
  assert.equal(resolve({ sourceTopic: 'orders.dlq', rules }).topic, 'orders.events.v1');
});

test('each star of a rule is replaced by what the same star matched', () => {
  const rules = [{ match: 'dead.*.from.*', topic: '*.in.*' }];
  assert.equal(resolve({ sourceTopic: 'dead.orders.from.shop', rules }).topic, 'orders.in.shop');
});

test('a rule without a valid target leaves the message unroutable', () => {
  for (const topic of ['orders.dlq', '__x', '*.*', 'same-dlt'])
    assert.deepEqual(
      resolve({ sourceTopic: 'orders.dlq', rules: [{ match: '*.dlq', topic }] }),
      unroutable('orders.dlq'),
    );
});

test('the name of a dead-letter topic gives the original topic', () => {
  for (const [sourceTopic, topic] of [
    ['orders.dlq', 'orders'],
    ['orders.dlq.v1', 'orders.v1'],
    ['shop.orders.dlq.v12', 'shop.orders.v12'],
    ['orders-dlt', 'orders'],
    ['orders.events.v1.DLT', 'orders.events.v1'],
  ] as const)
    assert.deepEqual(resolve({ sourceTopic }), { topic, unroutable: false, by: 'naming' });
});

test('other names give no original topic', () => {
  for (const sourceTopic of [
    'orders',
    'dlq',
    '.dlq',
    '.dlq.v1',
    '-dlt',
    'orders.dlq.x',
    'orders.dlq.v',
    'ordersdlq',
  ])
    assert.deepEqual(resolve({ sourceTopic }), unroutable(sourceTopic));
});

test('the result is never a dead-letter topic', () => {
  assert.deepEqual(resolve({ sourceTopic: 'orders.dlq.dlq' }), unroutable('orders.dlq.dlq'));
  assert.deepEqual(resolve({ sourceTopic: 'orders-dlt.DLT' }), unroutable('orders-dlt.DLT'));
  const name = fc
    .array(fc.constantFrom('a', '.dlq', '.v1', '-dlt', '.DLT', '__', ' '), { maxLength: 6 })
    .map((parts) => parts.join(''));
  const rule = fc.record({
    match: fc.oneof(name, fc.constantFrom('*', '*.dlq')),
    topic: fc.oneof(name, fc.constantFrom('*', '*.v1')),
  });
  fc.assert(
    fc.property(
      fc.option(name, { nil: undefined }),
      name,
      fc.array(rule, { maxLength: 3 }),
      (headerTopic, sourceTopic, rules) => {
        const answer = resolve({ headerTopic, sourceTopic, rules });
        if (answer.unroutable) return assert.deepEqual(answer, unroutable(sourceTopic));
        assert.ok(isLegalTopic(answer.topic) && !isDeadLetterTopic(answer.topic));
        return assert.notEqual(answer.topic, sourceTopic);
      },
    ),
    { numRuns: 3000 },
  );
});

test('a topic is never its own original topic, even if the pattern no longer matches it', () => {
  assert.deepEqual(
    resolve({ headerTopic: 'orders.failed', sourceTopic: 'orders.failed' }),
    unroutable('orders.failed'),
  );
});
