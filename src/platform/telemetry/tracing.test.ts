import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trace } from '@opentelemetry/api';
import { startTracing, withSpan } from './tracing.ts';

const facts = { service: 'redrive', version: '0.1.0', environment: 'test' };
const unwanted = () => assert.fail('loaded a module');
const missing = () => Promise.reject(Object.assign(new Error('not found'), { code: 'ERR_MODULE_NOT_FOUND' }));

test('a span gives back what its work gives, and throws what it throws', async () => {
  const tracer = trace.getTracer('test');
  assert.equal(await withSpan(tracer, 'claim', { slice: 'dlq' }, async () => 7), 7);
  const failure = new Error('lost');
  await assert.rejects(
    withSpan(tracer, 'claim', {}, () => Promise.reject(failure)),
    failure,
  );
});

test('without an endpoint nothing is loaded', async () => {
  const tracing = await startTracing({ ...facts, otlpEndpoint: undefined, importModule: unwanted });
  await tracing.stop();
});

test('an endpoint without the SDK says what to install', async () => {
  await assert.rejects(
    startTracing({ ...facts, otlpEndpoint: 'http://127.0.0.1:4318', importModule: missing }),
    /npm install @opentelemetry\/sdk-node @opentelemetry\/exporter-trace-otlp-http/,
  );
});
