import { initProducerIdV4, initProducerIdV5 } from '@platformatic/kafka';
import { sleep } from '../../../kernel/clock.ts';
import { AppError } from '../../../kernel/errors.ts';
import { offered } from './api-version.ts';
import type { Cluster } from './cluster.ts';
import { deadlineIn, hasPassed, within, type Deadline } from './deadline.ts';
import { isRetriable, protocolCode, protocolMessage, responseOf } from './kafka-errors.ts';

/** With the sequence number it identifies a batch, so that the broker recognises one that is sent again. */
export type ProducerSession = Readonly<{ producerId: bigint; producerEpoch: number }>;

export type ProducerSessions = Readonly<{
  current(deadline: Deadline): Promise<ProducerSession>;
  /** No sender starts with this session any more; senders that use it continue. */
  retire(session: ProducerSession): void;
}>;

/** Of one request; then the next broker is asked. */
const askTimeoutMs = 5000;
/** A broker that has just started has its block of producer ids after a moment. */
const retryDelayMs = 100;
/** The request has this field; we have no transactions, so it does not matter. */
const unusedTransactionTimeoutMs = 60_000;
const noRight = 'CLUSTER_AUTHORIZATION_FAILED';

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
    // Concurrent callers wait for the same response, each until its own deadline.
    current: (deadline) => within(deadline, 'producer id', (asked ??= ask())),
    retire: (session) => {
      if (session !== current) return;
      current = undefined;
      asked = undefined;
    },
  };
}

/** A broker that has just started has no ids yet: worth a retry. */
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
        // Kafka refuses a session to a user without the right to write to any topic.
        code === noRight ? `SYS_BROKER_${noRight}` : 'SYS_BROKER_NO_PRODUCER_ID',
        kind,
        `no producer id: ${protocolMessage(code)} (${code})`,
      );
    await sleep(retryDelayMs);
  }
}
