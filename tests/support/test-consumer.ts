import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import type { Broker, BrokerRecord, Header, OutgoingRecord } from '../../src/platform/broker/port.ts';

/**
 * A consumer of one topic, as a service has one: it reads, writes what it cannot process to a dead-letter topic, and
 * then commits its offset for its group.
 */
export type TestConsumer = Readonly<{
  /** What it has read so far. */
  seen: readonly BrokerRecord[];
  stop(): Promise<void>;
}>;

export type ConsumerOptions = Readonly<{
  topic: string;
  deadLetterTopic: string;
  group: string;
  /** The headers of the dead letter; null: the record was processed. */
  judge: (record: BrokerRecord, at: Readonly<{ partition: number }>) => DeadLetterOf | null;
  /** Does not commit what it has read. */
  isLagging?: () => boolean;
}>;

export type DeadLetterOf = Readonly<{ headers: readonly Header[]; value?: Buffer }>;

const limits = { maxWaitMs: 50, maxBytes: 1 << 20, maxBytesPerPartition: 1 << 20 };

export function startTestConsumer(broker: Broker, options: ConsumerOptions): TestConsumer {
  const stopping = new AbortController();
  const seen: BrokerRecord[] = [];
  const running = consume(broker, options, seen, stopping.signal);
  return {
    seen,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function consume(
  broker: Broker,
  { topic, deadLetterTopic, group, judge, isLagging = () => false }: ConsumerOptions,
  seen: BrokerRecord[],
  signal: AbortSignal,
): Promise<void> {
  const { partitions } = await broker.partitions((name) => name === topic);
  const positions = partitions.map((one) => ({ ...one, offset: one.start }));
  for (const one of positions) one.offset = (await broker.committed(group, [one]))[0]?.offset ?? one.offset;
  let committed = '';
  while (!signal.aborted) {
    for (const [i, result] of (await broker.fetch(positions, limits)).entries()) {
      const position = positions[i];
      assert.ok(position !== undefined && 'records' in result, inspect(result));
      seen.push(...result.records);
      const dead = result.records.flatMap((record): OutgoingRecord[] => {
        const judged = judge(record, position);
        return judged === null
          ? []
          : [{ topic: deadLetterTopic, key: record.key, value: record.value, ...judged }];
      });
      for (const one of await broker.publish(dead, { timeoutMs: 10_000 })) assert.equal(one.result, 'acked');
      position.offset = result.nextOffset;
    }
    const now = positions.map(({ offset }) => offset).join();
    if (isLagging() || now === committed) continue;
    await broker.mirror(group, positions);
    committed = now;
  }
}
