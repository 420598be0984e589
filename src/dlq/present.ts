import { isUtf8 } from 'node:buffer';
import { formatTimestamp } from '../kernel/timestamp.ts';
import { rawJson } from '../platform/http/raw-json.ts';
import type { Message } from './stored-message.ts';

/** Messages as JSON: first the fields that the predecessor's clients know, then ours. */

export type Json = Readonly<Record<string, unknown>>;

export const timestamp = (instant: Date | null): string | null =>
  instant === null ? null : formatTimestamp(instant);

export function presentMessage(message: Message): Json {
  return {
    id: message.id,
    original_topic: message.originalTopic,
    error_message: message.errorMessage,
    retry_count: message.retryCount,
    max_retries: message.maxRetries,
    payload: message.payloadText === null ? null : rawJson(message.payloadText),
    status: message.status,
    created_at: timestamp(message.createdAt),
    updated_at: timestamp(message.updatedAt),
    last_retry_at: timestamp(message.lastRetryAt),
    source_topic: message.sourceTopic,
    source_partition: message.sourcePartition,
    source_offset: message.sourceOffset,
    ...presentKey(message.key),
    error_class: message.errorClass,
    consumer_group: message.consumerGroup,
    original_partition: message.originalPartition,
    original_offset: message.originalOffset,
    original_timestamp: timestamp(message.originalTimestamp),
    dialect: message.dialect,
    fingerprint: message.fingerprint,
    unroutable: message.unroutable,
    attempt_no: message.attemptNo,
    parent_id: message.parentId,
    resolution: message.resolution,
    archived: message.isArchived,
    routed: message.isRouted,
    ...(message.isPayloadOmitted ? { payload_omitted: true } : {}),
    ...(message.isKeyOmitted ? { key_omitted: true } : {}),
  };
}

/** Also has what would make a list too long. */
export function presentWholeMessage(message: Message): Json {
  return { ...presentMessage(message), error_stack: message.errorStack };
}

export function presentKey(key: Buffer | null): Json {
  if (key === null) return { key: null };
  return isText(key) ? { key: key.toString('utf8') } : { key: null, key_base64: key.toString('base64') };
}

/** UTF-8 without NUL. */
export function isText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}
