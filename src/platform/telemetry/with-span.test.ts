import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trace } from '@opentelemetry/api';
import { withSpan } from './with-span.ts';

test('a span gives back what its work gives, and throws what it throws', async () => {
  const tracer = trace.getTracer('test');
  assert.equal(await withSpan(tracer, 'claim', { slice: 'dlq' }, async () => 7), 7);
  const failure = new Error('lost');
  await assert.rejects(
    withSpan(tracer, 'claim', {}, () => Promise.reject(failure)),
    failure,
  );
});
