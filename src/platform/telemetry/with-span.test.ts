import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SpanStatusCode } from '@opentelemetry/api';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { hostileValues } from '../../../tests/support/hostile-values.ts';
import { withSpan } from './with-span.ts';

const exporter = new InMemorySpanExporter();
const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
const tracer = provider.getTracer('test');

test('whatever is thrown below a span is thrown on, and the span has its message', async () => {
  for (const [name, make] of hostileValues) {
    exporter.reset();
    const thrown = make();
    // In a box: reading the `then` of such a value may throw.
    const caught = await withSpan(tracer, name, {}, async () => {
      throw thrown;
    }).then(
      () => assert.fail(name),
      (error: unknown) => ({ error }),
    );
    assert.ok(Object.is(caught.error, thrown), name);
    const [span] = exporter.getFinishedSpans();
    assert.equal(span?.name, name);
    assert.equal(span.status.code, SpanStatusCode.ERROR, name);
    assert.equal(span.events.length, 1, name);
    assert.equal(span.events[0]?.attributes?.['exception.message'], span.status.message, name);
  }
});
