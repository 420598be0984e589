import type { Cluster } from './cluster.ts';
import type { Deadline } from './deadline.ts';
import type { ProducerSession, ProducerSessions } from './producer-sessions.ts';
import { sendChunk, type Chunk, type SendOutcome } from './send-chunk.ts';
import { createSemaphore, type Semaphore } from './semaphore.ts';

/**
 * Sends to one partition of one topic id. It sends one batch at a time, so batches keep their order and their sequence
 * numbers have no gaps. After anything but an ack the sender starts again with a new session: the broker would refuse the
 * next number of the old one, or take it for a batch that it has.
 */
export type PartitionSender = Readonly<{
  /** One caller at a time, in the order of arrival. */
  exclusive: Semaphore;
  send(chunk: Omit<Chunk, 'session' | 'sequence'>, deadline: Deadline): Promise<SendOutcome>;
}>;

const lastSequence = 2 ** 30;

export function createPartitionSender(cluster: Cluster, sessions: ProducerSessions): PartitionSender {
  let session: ProducerSession | undefined;
  let sequence = 0;
  let lastOffset = -1n;

  const restart = (): void => {
    if (session) sessions.retire(session);
    session = undefined;
    sequence = 0;
  };

  return {
    exclusive: createSemaphore(1),
    send: async (chunk, deadline) => {
      if (sequence > lastSequence) restart();
      session ??= await sessions.current(deadline);
      const outcome = await sendChunk(cluster, { ...chunk, session, sequence }, deadline);
      if (outcome.outcome !== 'acked') {
        restart();
        return outcome;
      }
      const { baseOffset } = outcome;
      if (baseOffset <= lastOffset) {
        const message = `the broker acknowledged offset ${baseOffset} after ${lastOffset}`;
        restart();
        lastOffset = -1n;
        cluster.forget(chunk.topic);
        return { outcome: 'unknown', code: 'OFFSET_NOT_GROWING', message };
      }
      sequence += chunk.records.length;
      lastOffset = baseOffset + BigInt(chunk.records.length - 1);
      return outcome;
    },
  };
}
