import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trace } from '@opentelemetry/api';
import * as fc from 'fast-check';
import { contextOf, readTraceContext } from './trace-context.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

test('the caller is found in its traceparent', () => {
  const parent = readTraceContext({ traceparent: `00-${traceId}-${spanId}-01`, tracestate: 'vendor=1' });
  assert.equal(parent?.traceId, traceId);
  assert.equal(parent?.spanId, spanId);
  assert.equal(parent?.traceFlags, 1);
  assert.equal(parent?.isRemote, true);
  assert.equal(parent?.traceState?.get('vendor'), '1');
  assert.equal(trace.getSpanContext(contextOf(parent))?.traceId, traceId);
});

test('a later version is read by what is known of it', () => {
  assert.equal(readTraceContext({ traceparent: `01-${traceId}-${spanId}-03-more` })?.traceFlags, 1);
});

test('a traceparent that breaks the rules starts no trace', () => {
  for (const traceparent of [
    undefined,
    '',
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}`,
  ]) {
    assert.equal(readTraceContext({ traceparent }), undefined, traceparent);
  }
  assert.equal(trace.getSpan(contextOf(undefined)), undefined);
});

test('reading never throws, whatever was sent', () => {
  fc.assert(
    fc.property(fc.string(), fc.string({ unit: 'binary' }), (traceparent, tracestate) => {
      readTraceContext({ traceparent, tracestate });
      readTraceContext({ traceparent: `00-${traceId}-${spanId}-01`, tracestate });
    }),
  );
});
