import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startServerProcess } from '../support/redrive-process.ts';
import { databaseEnv } from '../support/pooler.ts';

/** What a collector gets, as far as these tests look at it. */
type Attribute = Readonly<{ key: string; value: Readonly<{ stringValue?: string }> }>;
type Span = Readonly<{ name: string; traceId: string; parentSpanId?: string }>;
type Export = Readonly<{
  resourceSpans: readonly Readonly<{
    resource: Readonly<{ attributes: readonly Attribute[] }>;
    scopeSpans: readonly Readonly<{ spans: readonly Span[] }>[];
  }>[];
}>;

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentSpanId = '00f067aa0ba902b7';

describe('spans are exported over OTLP', () => {
  let database: TestDatabase;
  let collector: Server;
  const exports: Export[] = [];
  const paths = new Set<string | undefined>();
  before(async () => {
    database = await createTestDatabase();
    const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      paths.add(request.url);
      exports.push((await json(request)) as Export);
      response.setHeader('content-type', 'application/json').end('{}');
    };
    collector = createServer((request, response) => void receive(request, response)).listen(0, '127.0.0.1');
    await once(collector, 'listening');
  });
  after(async () => {
    collector.close();
    await database.drop();
  });

  it('with OTEL_EXPORTER_OTLP_ENDPOINT set, requests and claims arrive at the collector', async () => {
    const { port } = collector.address() as AddressInfo;
    const server = await startServerProcess({
      ...databaseEnv(database.url),
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}/`,
      APP_ENVIRONMENT: 'test',
    });
    await fetch(`${server.url}/api/v1/jobs/queues`, {
      headers: { traceparent: `00-${traceId}-${parentSpanId}-01` },
    });
    const { code } = await server.stop();
    assert.equal(code, 0);
    assert.deepEqual([...paths], ['/v1/traces']);
    const resources = exports.flatMap(({ resourceSpans }) => resourceSpans);
    const attributes = Object.fromEntries(
      resources.flatMap(({ resource }) => resource.attributes.map((one) => [one.key, one.value.stringValue])),
    );
    assert.equal(attributes['service.name'], 'redrive');
    assert.equal(attributes['deployment.environment.name'], 'test');
    const spans = resources.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
    const request = spans.find((span) => span.traceId === traceId);
    assert.equal(request?.parentSpanId, parentSpanId, 'the request belongs to the trace of its caller');
    assert.ok(spans.some(({ name }) => name === 'claim'));
  });

  for (const [what, answer] of [
    ['refuses connections', 'refuse'],
    ['never answers', 'hang'],
  ] as const)
    it(`a collector that ${what} harms neither the server nor its stop`, async () => {
      const held = new Set<Socket>();
      const silent = createServer(() => {}).listen(0, '127.0.0.1');
      silent.on('connection', (socket) => held.add(socket));
      await once(silent, 'listening');
      const { port } = silent.address() as AddressInfo;
      if (answer === 'refuse') {
        silent.close();
        await once(silent, 'close');
      }
      const server = await startServerProcess({
        ...databaseEnv(database.url),
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      }).catch((error: unknown) => {
        silent.close();
        throw error;
      });
      try {
        const warned = (): boolean => server.log().some(({ msg }) => msg === 'failed to export spans');
        // Spans of the claims fill a batch every five seconds; the failure is told, once.
        await eventually(() => assert.ok(warned(), 'nothing was said'), { withinMs: 30_000 });
        assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
      } finally {
        const { code, tookMs } = await server.stop();
        silent.close();
        for (const socket of held) socket.destroy();
        assert.equal(code, 0);
        assert.ok(tookMs < 5000, `the stop took ${tookMs} ms`);
      }
      assert.equal(server.log().filter(({ msg }) => msg === 'failed to export spans').length, 1);
    });
});
