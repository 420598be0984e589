import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { context, ROOT_CONTEXT, trace, type Context, type ContextManager } from '@opentelemetry/api';
import { traceparentOf } from './outgoing-traceparent.ts';

const storage = new AsyncLocalStorage<Context>();
const manager: ContextManager = {
  active: () => storage.getStore() ?? ROOT_CONTEXT,
  with: (active, run, self, ...args) => storage.run(active, () => run.apply(self, args) as never),
  bind: (_active, target) => target,
  enable: () => manager,
  disable: () => manager,
};

const traceId = '0af7651916cd43dd8448eb211c80319c';
const ofOrder = `00-${traceId}-b7ad6b7169203331-01`;

function within(activeTraceId: string, run: () => unknown): unknown {
  const active = { traceId: activeTraceId, spanId: '00f067aa0ba902b7', traceFlags: 1 };
  context.setGlobalContextManager(manager);
  try {
    return context.with(trace.setSpanContext(ROOT_CONTEXT, active), run);
  } finally {
    context.disable();
  }
}

test('without tracing the order brings its own trace, and nothing where it has none', () => {
  assert.equal(traceparentOf(ofOrder), ofOrder);
  assert.equal(traceparentOf(null), undefined);
});

test('what is no legal traceparent does not travel, and what a later version adds is left out', () => {
  for (const text of ['', 'nonsense', `${ofOrder}\r\nx: 1`, `00-${'0'.repeat(32)}-b7ad6b7169203331-01`])
    assert.equal(traceparentOf(text), undefined, text);
  assert.equal(traceparentOf(`cc-${traceId}-b7ad6b7169203331-01-\u20ac`), ofOrder);
});

test('the span that sends an order is named where it belongs to the same trace, or the order has none', () => {
  const spans = `00-${traceId}-00f067aa0ba902b7-01`;
  assert.equal(
    within(traceId, () => traceparentOf(ofOrder)),
    spans,
  );
  assert.equal(
    within(traceId, () => traceparentOf(null)),
    spans,
  );
});

test('a span of another trace, such as that of a batch, does not hide where the order comes from', () => {
  assert.equal(
    within('4bf92f3577b34da6a3ce929d0e0e4736', () => traceparentOf(ofOrder)),
    ofOrder,
  );
});
