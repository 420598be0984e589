import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLocalBroker } from '../../src/platform/broker/local/local-broker.ts';
import { consume } from './consume.ts';

test('a consumer that retention has overtaken goes on with the oldest record that is left', async () => {
  const topic = 'orders.v1';
  const broker = createLocalBroker({ bytesPerTopic: 10_000 });
  await broker.createTopic(topic, 1);
  const publish = (values: readonly string[]) =>
    broker.publish(
      values.map((value) => ({ topic, key: null, value: Buffer.from(value), headers: [] })),
      { timeoutMs: 1000 },
    );
  await publish(['first']);
  const stopping = new AbortController();
  const seen: string[] = [];
  await consume(
    broker,
    {
      topic,
      group: 'readers',
      async handle({ value }) {
        seen.push(String(value));
        if (seen.length === 1) await publish([...Array.from({ length: 100 }, (_, n) => `${n}`), 'last']);
        if (String(value) === 'last') stopping.abort();
      },
      deadLetter: ({ error }) => assert.fail(error),
    },
    stopping.signal,
  );
  assert.deepEqual([seen[0], seen.at(-1)], ['first', 'last']);
  assert.ok(seen.length > 2 && seen.length < 50, `${seen.length} records were read`);
});
