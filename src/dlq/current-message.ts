import { AppError } from '../kernel/errors.ts';
import { messageTag, type Json } from './present.ts';
import type { FindHead, MessageHead } from './stored-message.ts';

/**
 * A refusal because of the message's state carries that state (`current` in the answer), read after the refusal, so
 * that a client can show it without another request. It has no texts and bytes of the message.
 */
export async function withCurrent<Result>(
  findHead: FindHead,
  id: string,
  act: () => Promise<Result>,
): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof AppError) || !['conflict', 'precondition_failed'].includes(error.kind))
      throw error;
    const head = await findHead(id);
    if (head === null) throw error;
    const { code, kind, message, details } = error;
    throw new AppError(code, kind, message, { details, cause: error, current: presentHead(head) });
  }
}

function presentHead(head: MessageHead): Json {
  return {
    id: head.id,
    original_topic: head.originalTopic,
    retry_count: head.retryCount,
    max_retries: head.maxRetries,
    status: head.status,
    attempt_no: head.attemptNo,
    unroutable: head.unroutable,
    routed: head.isRouted,
    version: head.version,
    archived: head.isArchived,
    being_retried: head.leaseIsLive,
    etag: messageTag(head),
  };
}
