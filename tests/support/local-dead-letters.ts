import assert from 'node:assert/strict';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from './eventually.ts';
import type { TestSystem } from './start-system.ts';

export type LocalRecord = Readonly<{
  key: string | null;
  value: string | null;
  headers?: readonly (readonly [name: string, value: string])[];
}>;

/**
 * Publishes dead letters of these topics on the local broker of a system, and waits until they are stored. Returns the id
 * of the message.
 */
export async function deadLetterTo(
  system: TestSystem,
  topics: readonly string[],
): Promise<(topic: string, record: LocalRecord) => Promise<string>> {
  const { broker, db } = system;
  assert.ok(broker !== null);
  for (const topic of topics)
    for (const name of [`${topic}.v1`, `${topic}.dlq.v1`]) await broker.createTopic(name, 1);
  return async (topic, { key, value, headers = [] }) => {
    const source = `${topic}.dlq.v1`;
    const outgoing = {
      topic: source,
      key: key === null ? null : Buffer.from(key),
      value: value === null ? null : Buffer.from(value),
      headers: [['error', 'it failed'] as const, ...headers].map(([name, text]) => ({
        key: Buffer.from(name),
        value: Buffer.from(text),
      })),
      timestamp: 1n,
      compression: 'none' as const,
    };
    const [result] = await broker.publish([outgoing], { timeoutMs: 5000 });
    assert.equal(result?.result, 'acked');
    const { offset } = result;
    const [partition] = (await broker.partitions((name) => name === source)).partitions;
    return eventually(async () => {
      const [row] = await db.query<{ id: string }>(sql`
        SELECT id FROM dlq.dlq_messages WHERE source_topic_id = ${partition?.topicId} AND source_offset = ${offset}`);
      return row?.id ?? assert.fail('it is not stored yet');
    });
  };
}
