import type { Broker, OutgoingRecord } from '../../src/platform/broker/port.ts';

/** Resolves when the broker has the record for certain. */
export async function publish(broker: Broker, record: OutgoingRecord): Promise<void> {
  const [result] = await broker.publish([record], { timeoutMs: 5000 });
  if (result?.result === 'acked') return;
  const reason = result !== undefined && 'message' in result ? result.message : 'no answer';
  throw new Error(`the record was not published to ${record.topic}: ${reason}`);
}
