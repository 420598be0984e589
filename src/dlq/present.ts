import { isUtf8 } from 'node:buffer';
import { formatTimestamp } from '../kernel/timestamp.ts';
import { entityTagOf } from '../platform/http/entity-tag.ts';
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
    next_attempt_at: timestamp(message.nextAttemptAt),
    retry_policy: message.retryPolicy,
    version: message.version,
    ...(message.isPayloadOmitted ? { payload_omitted: true } : {}),
    ...(message.isKeyOmitted ? { key_omitted: true } : {}),
    ...(message.isSealed ? { encrypted: true } : {}),
    ...(message.unreadable === null ? {} : { unreadable: message.unreadable }),
  };
}

/** For lists: the beginning of the value and its size in place of the payload. */
export function presentListedMessage(message: Message): Json {
  const { payload: _, ...rest } = presentMessage(message);
  const { bytes = null, start = null } = message.value ?? {};
  return { ...rest, payload_preview: start === null ? null : previewOf(start, bytes), payload_bytes: bytes };
}

const previewLength = 200;

/** The beginning of the value in one line; null if it is not text. */
function previewOf(start: Buffer, bytes: bigint | null): string | null {
  const isCut = bytes !== null && bytes > BigInt(start.length);
  const text = isCut ? start.toString('utf8').replace(/\uFFFD{1,3}$/, '') : start.toString('utf8');
  if (/[\uFFFD\0]/.test(text)) return null;
  const shown = Array.from(text.replaceAll(/\s+/g, ' ').trim());
  return shown.slice(0, previewLength).join('') + (isCut || shown.length > previewLength ? '…' : '');
}

/** Every change of the message takes a new epoch, so the tag changes with it. */
export function messageTag({ version, epoch }: Readonly<{ version: number; epoch: bigint }>): string {
  return entityTagOf(version, epoch);
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
