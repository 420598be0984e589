import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json, text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

type Span = Readonly<{
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  kind: number;
  links?: readonly Readonly<{ traceId: string; spanId: string }>[];
}>;
type Export = Readonly<{
  resourceSpans: readonly Readonly<{ scopeSpans: readonly Readonly<{ spans: readonly Span[] }>[] }>[];
}>;

const [client, producer, consumer] = [3, 4, 5];

/** Traces of callers and producers: the id of the trace, and of the span in it. */
const traceOf = (digit: string) => {
  const [traceId, spanId] = [digit.repeat(32), digit.repeat(16)];
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` };
};
const [record, request, order, job, saga] = ['1', '2', '3', '4', '5'].map(traceOf) as [
  ReturnType<typeof traceOf>,
  ReturnType<typeof traceOf>,
  ReturnType<typeof traceOf>,
  ReturnType<typeof traceOf>,
  ReturnType<typeof traceOf>,
];

/** The trace of whoever caused the work goes on through Redrive to whoever gets it. */
describe('a trace', () => {
  const spans: Span[] = [];
  /** The `traceparent` of each call, by its path. */
  const received = new Map<string, string | undefined>();
  let world: Server;
  let system: TestSystem;
  before(async () => {
    const answer = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
      if (message.url === '/v1/traces') {
        const { resourceSpans } = (await json(message)) as Export;
        spans.push(...resourceSpans.flatMap((one) => one.scopeSpans.flatMap((scope) => scope.spans)));
      } else {
        await text(message);
        received.set(message.url ?? '', message.headers['traceparent'] as string | undefined);
      }
      response.setHeader('content-type', 'application/json').end('{}');
    };
    world = createServer((message, response) => void answer(message, response)).listen(0, '127.0.0.1');
    await once(world, 'listening');
    const url = `http://127.0.0.1:${(world.address() as AddressInfo).port}`;
    system = await startTestSystem({
      kafka: 'local',
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OUTBOX_DESTINATIONS: JSON.stringify({ partner: { type: 'http', url: `${url}/order` } }),
        JOBS_QUEUES: JSON.stringify({ pushed: { target: { type: 'http', url: `${url}/job` } } }),
        SERVICES: JSON.stringify({ shop: { type: 'http', base_url: url } }),
        SAGA_WORKFLOW_DIR: '/nonexistent',
      },
    });
    await redriveOne();
    await addOrderJobAndSaga();
    // The stop sends all spans that are left.
    await system.stop();
  });
  after(async () => {
    await system.drop();
    world.close();
  });

  const published: { headers: readonly (readonly [string, string])[] }[] = [];

  async function redriveOne(): Promise<void> {
    const { broker, api } = system;
    assert.ok(broker);
    for (const topic of ['orders.v1', 'orders.v1.dlq']) await broker.createTopic(topic, 1);
    const headers = [
      { key: Buffer.from('traceparent'), value: Buffer.from(record.traceparent) },
      { key: Buffer.from('x-original-topic'), value: Buffer.from('orders.v1') },
    ];
    await broker.publish([{ topic: 'orders.v1.dlq', key: null, value: Buffer.from('{}'), headers }], {
      timeoutMs: 5000,
    });
    const id = await eventually(async () => {
      const { body } = await api.get<{ messages: readonly { id: string }[] }>('/api/v1/dlq/messages');
      return body.messages[0]?.id ?? assert.fail('not stored yet');
    });
    const retried = await api.post(
      `/api/v1/dlq/messages/${id}/retry`,
      {},
      { traceparent: request.traceparent },
    );
    assert.equal(retried.status, 200, retried.text);
    const { partitions } = await broker.partitions(
      (topic) => topic === 'orders.v1',
      AbortSignal.timeout(5000),
    );
    const [found] = await broker.fetch(
      partitions.map((one) => ({ ...one, offset: 0n })),
      { maxWaitMs: 1000, maxBytes: 1 << 20, maxBytesPerPartition: 1 << 20 },
      AbortSignal.timeout(5000),
    );
    assert.ok(found !== undefined && 'records' in found);
    for (const one of found.records)
      published.push({ headers: one.headers.map(({ key, value }) => [String(key), String(value)] as const) });
  }

  async function addOrderJobAndSaga(): Promise<void> {
    const { api } = system;
    const add = async (path: string, body: object, headers: Record<string, string>): Promise<void> => {
      const { status, text: answer } = await api.post(path, body, headers);
      assert.ok(status < 300, `${path}: ${status} ${answer}`);
    };
    const key = 'trace-of-an-order';
    await add(
      '/api/v1/outbox/orders',
      { idempotency_key: key, request: {} },
      { 'idempotency-key': key, traceparent: order.traceparent },
    );
    await add('/api/v1/jobs', { queue: 'pushed', payload: {} }, { traceparent: job.traceparent });
    const workflow = `name: buy\nsteps:\n  - {name: reserve, service: shop, method: POST /reserve}`;
    await add('/api/v1/workflows', { workflow_yaml: workflow }, {});
    await add('/api/v1/sagas', { workflow_name: 'buy', payload: {} }, { traceparent: saga.traceparent });
    await eventually(() => assert.deepEqual([...received.keys()].toSorted(), ['/job', '/order', '/reserve']));
  }

  const named = (name: string): Span =>
    spans.find((span) => span.name === name) ??
    assert.fail(`no span ${name} in ${[...new Set(spans.map((span) => span.name))].join(', ')}`);
  const linksOf = (span: Span) => (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId }));

  test('of a record is linked to where it is polled and processed', () => {
    for (const [name, kind] of [
      ['poll orders.v1.dlq', client],
      ['process orders.v1.dlq', consumer],
    ] as const) {
      const span = named(name);
      assert.equal(span.kind, kind);
      assert.deepEqual(linksOf(span), [{ traceId: record.traceId, spanId: record.spanId }]);
      assert.notEqual(span.traceId, record.traceId, 'a batch belongs to none of its records');
    }
  });

  test('of a record has the span of its retry, which is linked to the request', () => {
    const span = named('send orders.v1');
    assert.deepEqual([span.traceId, span.parentSpanId, span.kind], [record.traceId, record.spanId, producer]);
    const operation = spans.find(
      ({ traceId, parentSpanId }) => traceId === request.traceId && parentSpanId === request.spanId,
    );
    assert.ok(operation);
    assert.deepEqual(linksOf(span), [{ traceId: request.traceId, spanId: operation.spanId }]);
  });

  test('of a record goes on byte for byte: the retried record has the header of its producer', () => {
    assert.equal(published.length, 1);
    const carried = published[0]?.headers.filter(([key]) => key === 'traceparent');
    assert.deepEqual(carried, [['traceparent', record.traceparent]]);
  });

  for (const [what, name, path, caller] of [
    ['an order', 'send partner', '/order', order],
    ['a job', 'push pushed', '/job', job],
    ['a saga', 'saga step reserve', '/reserve', saga],
  ] as const)
    test(`of ${what} has the span of the call, which is the parent of what the receiver does`, () => {
      const span = named(name);
      assert.deepEqual([span.traceId, span.kind], [caller.traceId, client]);
      const added = spans.find(
        ({ traceId, parentSpanId }) => traceId === caller.traceId && parentSpanId === caller.spanId,
      );
      assert.ok(added, 'the request that added it is in the trace');
      assert.equal(received.get(path), `00-${caller.traceId}-${span.spanId}-01`);
    });

  test('of a claim or a settle is one of its own', () => {
    for (const name of ['claim', 'settle']) assert.ok(named(name));
  });
});
