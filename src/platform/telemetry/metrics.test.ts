import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from './metrics.ts';

test('the figures of the process and of every part are there from the start', async () => {
  const text = await createMetrics().render();
  for (const name of [
    'process_cpu_seconds_total',
    'http_requests_total',
    'http_request_duration_seconds',
    'db_query_duration_seconds',
    'kafka_messages_produced_total',
    'kafka_messages_consumed_total',
    'redrive_stale_writes_total',
  ]) {
    assert.match(text, new RegExp(`^# TYPE ${name} `, 'm'));
  }
});

test('a slice adds its own figures, each name once', async () => {
  const metrics = createMetrics();
  const ingested = metrics.counter({ name: 'dlq_ingested_total', help: 'Stored.', labelNames: ['topic'] });
  ingested.inc({ topic: 'orders.dlq.v1' }, 3);
  metrics.gauge({ name: 'dlq_oldest_pending_seconds', help: 'Age.' }).set(7);
  metrics.histogram({ name: 'dlq_batch_size', help: 'Rows.', buckets: [1, 10] }).observe(5);
  metrics.staleWrites.inc({ slice: 'dlq' });
  const text = await metrics.render();
  assert.match(text, /^dlq_ingested_total\{topic="orders.dlq.v1"\} 3$/m);
  assert.match(text, /^dlq_oldest_pending_seconds 7$/m);
  assert.match(text, /^dlq_batch_size_bucket\{le="10"\} 1$/m);
  assert.match(text, /^redrive_stale_writes_total\{slice="dlq"\} 1$/m);
  assert.throws(
    () => metrics.counter({ name: 'dlq_ingested_total', help: 'Twice.' }),
    /already been registered/,
  );
});

test('two registries share nothing', async () => {
  const one = createMetrics();
  one.staleWrites.inc({ slice: 'dlq' });
  assert.doesNotMatch(await createMetrics().render(), /slice="dlq"/);
});

test('names of topics from outside make a bounded number of series, and the sum is right', async () => {
  const metrics = createMetrics();
  for (let i = 0; i < 300; i += 1) {
    metrics.kafkaProduced(`made-up-${i}`);
    metrics.kafkaConsumed(`made-up-${i}`, 2);
  }
  const text = await metrics.render();
  for (const [name, sum] of [
    ['kafka_messages_produced_total', 300],
    ['kafka_messages_consumed_total', 600],
  ] as const) {
    const values = [...text.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'))].map(([, value]) =>
      Number(value),
    );
    assert.equal(values.length, 201);
    assert.equal(
      values.reduce((all, one) => all + one, 0),
      sum,
    );
  }
});
