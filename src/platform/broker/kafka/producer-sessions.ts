import { initProducerIdV4, initProducerIdV5 } from '@platformatic/kafka';
import { sleep } from '../../../kernel/clock.ts';
import { AppError } from '../../../kernel/errors.ts';
import { offered } from './api-version.ts';
import type { Cluster } from './cluster.ts';
import { deadlineIn, hasPassed, within, type Deadline } from './deadline.ts';
import { isRetriable, protocolCode, protocolMessage, responseOf } from './kafka-errors.ts';

/** The identity under which the broker recognises a batch that is sent again, by its sequence number. */
export type ProducerSession = Readonly<{ producerId: bigint; producerEpoch: number }>;

export type ProducerSessions = Readonly<{
  current(deadline: Deadline): Promise<ProducerSession>;
  /** Nobody begins with this session any more; partitions that are in the middle of it go on. */
  retire(session: ProducerSession): void;
}>;

const askTimeoutMs = 5000;
const retryDelayMs = 100;
const unusedTransactionTimeoutMs = 60_000;

export function createProducerSessions(cluster: Cluster): ProducerSessions {
  let asked: Promise<ProducerSession> | undefined;
  let current: ProducerSession | undefined;

  const ask = async (): Promise<ProducerSession> => {
    try {
      current = await newSession(cluster);
      return current;
    } catch (error) {
      asked = undefined;
      throw error;
    }
  };
  return {
    // All who need one wait for the same answer, each no longer than it may.
    current: (deadline) => within(deadline, 'producer id', (asked ??= ask())),
    retire: (session) => {
      if (session !== current) return;
      current = undefined;
      asked = undefined;
    },
  };
}

/** A broker that has just started has no ids to give yet: that passes. */
async function newSession(cluster: Cluster): Promise<ProducerSession> {
  const deadline = deadlineIn(askTimeoutMs);
  for (;;) {
    const { errorCode, producerId, producerEpoch } = await cluster.askAny(deadline, 'producer id', (link) => {
      const api = offered(link, [initProducerIdV5.api, initProducerIdV4.api]);
      return responseOf(api.async(link.connection, null, unusedTransactionTimeoutMs, -1n, -1));
    });
    if (errorCode === 0) return { producerId, producerEpoch };
    const code = protocolCode(errorCode);
    const kind = isRetriable(code) ? 'unavailable' : 'internal';
    if (kind === 'internal' || hasPassed(deadline))
      throw new AppError(
        'SYS_BROKER_NO_PRODUCER_ID',
        kind,
        `no producer id: ${protocolMessage(code)} (${code})`,
      );
    await sleep(retryDelayMs);
  }
}
