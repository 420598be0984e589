import { createByteBudget } from '../../kernel/byte-budget.ts';
import type { PayloadReading, PayloadRequest } from '../read-payload.ts';

/** For the long payloads of running calls, over all queues. */
const totalBytes = 16 * 1024 * 1024;

type ReadPayload = (job: PayloadRequest) => Promise<PayloadReading | null>;

/**
 * Reads the long payloads of one queue as text, as many at once as fit into its share of the memory; a larger one is
 * read alone. A queue may have a hundred running calls, each with several copies of its payload. Each queue has its own
 * share, so that a target that hangs does not delay the jobs of other queues.
 */
export function createPayloadRoom(
  read: Readonly<{ bytes: (job: PayloadRequest) => Promise<number>; payload: ReadPayload }>,
  queues: number,
): ReadPayload {
  const budget = createByteBudget({
    bytes: Math.floor(totalBytes / queues),
    waitMs: null,
    maxWaiting: Number.POSITIVE_INFINITY,
  });
  return async (job) => {
    const share = await budget.reserve(await read.bytes(job));
    const release = (): void => share?.release();
    try {
      const reading = await read.payload({ ...job, payloadAs: 'text' });
      if (reading !== null && 'payload' in reading) return { ...reading, release };
      release();
      return reading;
    } catch (error) {
      release();
      throw error;
    }
  };
}
