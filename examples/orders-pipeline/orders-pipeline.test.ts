import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { decodeFailure } from '../../src/dlq/ingest/decoding/decode-failure.ts';
import { stripFailureHeaders } from '../../src/dlq/ingest/decoding/strip-failure-headers.ts';
import { createFingerprinter } from '../../src/kernel/fingerprint/fingerprint.ts';
import { createLocalBroker } from '../../src/platform/broker/local/local-broker.ts';
import type { Broker, BrokerRecord, Header, Position } from '../../src/platform/broker/port.ts';
import { runOrdersPipeline } from './orders-pipeline.ts';

const soon = { timeout: 10_000 } as const;
const limits = { maxWaitMs: 10_000, maxBytes: 10_000_000, maxBytesPerPartition: 10_000_000 } as const;
const ordersAtOnce = 40;

/** Runs the shop until the test ends. Its clock stands still, so after the first 40 orders only retries come. */
async function startShop(context: TestContext, seed: string) {
  const broker = createLocalBroker();
  const stopping = new AbortController();
  const read = await reader(broker, ['orders.dlq.v1', 'payments.v1']);
  const [fixing, fixed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const running = runOrdersPipeline({
    broker,
    seed,
    signal: stopping.signal,
    onBugFixed: fixed.resolve,
    sleep: async (ms, signal) => {
      const aborted = signal.aborted ? Promise.resolve() : once(signal, 'abort');
      await (ms >= 60_000 ? Promise.race([fixing.promise, aborted]) : aborted);
    },
  });
  context.after(async () => {
    stopping.abort();
    await running;
  });
  const fixBug = async (): Promise<void> => {
    fixing.resolve();
    await fixed.promise;
  };
  return { broker, fixBug, read };
}

type Read = Readonly<{ topic: string; record: BrokerRecord }>;

/** Makes the topics, so that it can wait for them; then gives their next so many records. */
async function reader(
  broker: Broker,
  topics: readonly string[],
): Promise<(count: number) => Promise<readonly Read[]>> {
  for (const topic of topics) await broker.createTopic(topic, 1);
  const { partitions } = await broker.partitions((name) => topics.includes(name));
  let positions = partitions.map((partition): Position => ({ ...partition, offset: partition.start }));
  return async (count) => {
    const found: Read[] = [];
    while (found.length < count) {
      const batches = await broker.fetch(positions, limits);
      positions = positions.map((position, index) => {
        const batch = batches[index];
        assert.ok(batch !== undefined && !('error' in batch));
        found.push(...batch.records.map((record) => ({ topic: position.topic, record })));
        return { ...position, offset: batch.nextOffset };
      });
    }
    assert.equal(found.length, count);
    return found;
  };
}

const header = (key: string, value: string): Header => ({ key: Buffer.from(key), value: Buffer.from(value) });

const errorOf = ({ record }: Read): string => decodeFailure(record.headers).errorMessage;

/** Publishes dead letters to `orders.v1` again, as Redrive does. */
async function retry(broker: Broker, deadLetters: readonly Read[], attempt: number): Promise<void> {
  await broker.publish(
    deadLetters.map(({ record: { key, value, headers } }) => ({
      topic: 'orders.v1',
      key,
      value,
      headers: [
        ...stripFailureHeaders(headers, 'plain'),
        header('redrive-message-id', '0198c5f5-0000-7000-8000-000000000001'),
        header('redrive-attempt', String(attempt)),
      ],
    })),
    { timeoutMs: 1000 },
  );
}

test('every order is either shipped or becomes a dead letter, and every cause is there', soon, async (t) => {
  const { read } = await startShop(t, 'any');
  const deadLetters = (await read(ordersAtOnce)).filter(({ topic }) => topic === 'orders.dlq.v1');
  const fingerprint = createFingerprinter();
  const causes = Map.groupBy(deadLetters, ({ record }) => {
    const { basis } = fingerprint(decodeFailure(record.headers));
    return `${basis.class}: ${basis.template}`;
  });
  assert.deepEqual([...causes.keys()].toSorted(), [
    'NoCarrierError: no carrier for category gift card',
    'SyntaxError: Unterminated string in JSON at position <n> (line <n> column <n>)',
    'TypeError: The encoded data was not valid for encoding utf-<n>',
    'WarehouseTimeoutError: warehouse osaka did not answer within <n> ms',
  ]);
});

test('the same seed fails the same orders, another seed others', soon, async (t) => {
  const failures: string[] = [];
  for (const seed of ['one', 'one', 'two']) {
    const { read } = await startShop(t, seed);
    const deadLetters = (await read(ordersAtOnce)).filter(({ topic }) => topic === 'orders.dlq.v1');
    failures.push(
      deadLetters
        .map((deadLetter) => `${String(deadLetter.record.value)} ${errorOf(deadLetter)}`)
        .toSorted()
        .join('\n'),
    );
  }
  assert.equal(failures[0], failures[1]);
  assert.notEqual(failures[0], failures[2]);
});

test(
  'a retried gift card comes back as the same message until the bug is fixed, then it ships',
  soon,
  async (t) => {
    const { broker, fixBug, read } = await startShop(t, 'any');
    const giftCards = (await read(ordersAtOnce))
      .filter((one) => errorOf(one).startsWith('NoCarrier'))
      .slice(0, 1);

    await retry(broker, giftCards, 1);
    const [returned] = await read(1);
    assert.ok(returned);
    assert.equal(returned.topic, 'orders.dlq.v1');
    assert.deepEqual(returned.record.value, giftCards[0]?.record.value);
    assert.deepEqual(
      returned.record.headers.map(({ key }) => String(key)),
      ['content-type', 'redrive-message-id', 'redrive-attempt', 'error', 'original_topic'],
    );

    await fixBug();
    // Only to an order for Osaka could something else happen: its warehouse may be slow.
    await retry(broker, giftCards, 2);
    const [next] = await read(1);
    assert.ok(next);
    assert.ok(next.topic === 'payments.v1' || errorOf(next).startsWith('WarehouseTimeout'));
  },
);

test('what is malformed fails at every attempt', soon, async (t) => {
  const { broker, read } = await startShop(t, 'any');
  const malformed = (await read(ordersAtOnce)).filter((one) => /SyntaxError|encoded data/.test(errorOf(one)));
  assert.equal(malformed.length, 4);
  for (const attempt of [1, 2, 3]) {
    await retry(broker, malformed, attempt);
    const returned = await read(malformed.length);
    assert.deepEqual(returned.map(errorOf).toSorted(), malformed.map(errorOf).toSorted());
  }
});

test('payments fail in the words of Spring Kafka', soon, async (t) => {
  const { broker } = await startShop(t, 'z');
  const [deadLetter] = await (await reader(broker, ['payments.dlq']))(6);
  assert.ok(deadLetter);
  const failure = decodeFailure(deadLetter.record.headers);
  assert.equal(failure.dialect, 'spring-kafka');
  assert.equal(failure.originalTopic, 'payments.v1');
  assert.match(failure.errorClass ?? '', /^com\.example\.payments\.\w+Exception$/);
});

test('a part that fails stops the others, and its error ends the pipeline', soon, async () => {
  const broker = createLocalBroker();
  const read = await reader(broker, ['orders.dlq.v1', 'payments.v1']);
  const { signal } = new AbortController();
  const running = runOrdersPipeline({ broker, seed: 'any', signal, onBugFixed: () => {} });
  await read(ordersAtOnce);
  await broker.close();
  await assert.rejects(running, { message: /the broker connection was closed/ });
});
