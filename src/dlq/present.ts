import { isUtf8 } from 'node:buffer';
import type { FastifyRequest } from 'fastify';
import type { Masks } from '../kernel/protect/protection.ts';
import { formatTimestamp } from '../kernel/timestamp.ts';
import type { PayloadMasks } from '../platform/http/access/payload-masks.ts';
import { entityTagOf } from '../platform/http/entity-tag.ts';
import { rawJson } from '../platform/http/raw-json.ts';
import type { Message } from './stored-message.ts';

/** Messages as JSON: first the fields that the predecessor's clients know, then ours. */

export type Json = Readonly<Record<string, unknown>>;

export const timestamp = (instant: Date | null): string | null =>
  instant === null ? null : formatTimestamp(instant);

export function presentMessage(message: Message, masks: Masks): Json {
  const { payloadText, errorMessage, key, errorClass } = message;
  const payload = payloadText === null ? null : masks.json(payloadText);
  const error = masks.text(errorMessage);
  const shownKey = key === null ? null : masks.key(key);
  const isMasked = payload !== payloadText || error !== errorMessage || shownKey !== key;
  return {
    id: message.id,
    original_topic: message.originalTopic,
    error_message: error,
    retry_count: message.retryCount,
    max_retries: message.maxRetries,
    payload: payload === null ? null : rawJson(payload),
    status: message.status,
    created_at: timestamp(message.createdAt),
    updated_at: timestamp(message.updatedAt),
    last_retry_at: timestamp(message.lastRetryAt),
    source_topic: message.sourceTopic,
    source_partition: message.sourcePartition,
    source_offset: message.sourceOffset,
    ...presentKey(shownKey),
    error_class: masks.text(errorClass),
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
    ...(message.removedParts === null ? {} : { removed_parts: message.removedParts }),
    ...(message.unreadable === null ? {} : { unreadable: message.unreadable }),
    ...(isMasked ? { masked: true } : {}),
  };
}

/** For lists: the beginning of the value and its size in place of the payload. */
export function presentListedMessage(message: Message, masks: Masks): Json {
  const { payload: _, ...rest } = presentMessage(message, masks);
  const { bytes = null, start = null } = message.value ?? {};
  const isCut = start !== null && bytes !== null && bytes > BigInt(start.length);
  const shown = start === null ? null : shownStart(start, isCut, masks);
  const isMasked = start !== null && !masks.isEmpty && shown !== textOf(start, isCut);
  return {
    ...rest,
    ...(isMasked ? { masked: true } : {}),
    payload_preview: shown === null ? null : previewOf(shown, isCut),
    payload_bytes: bytes,
  };
}

const previewLength = 200;

function shownStart(start: Buffer, isCut: boolean, masks: Masks): string | null {
  if (masks.isEmpty) return textOf(start, isCut);
  return isCut ? masks.start(start) : textOf(masks.value(start), false);
}

/** Null if it is not text. */
function textOf(start: Buffer, isCut: boolean): string | null {
  const text = isCut ? start.toString('utf8').replace(/\uFFFD{1,3}$/, '') : start.toString('utf8');
  return /[\uFFFD\0]/.test(text) ? null : text;
}

/** The beginning of the value in one line. */
function previewOf(text: string, isCut: boolean): string {
  const shown = Array.from(text.replaceAll(/\s+/g, ' ').trim());
  return shown.slice(0, previewLength).join('') + (isCut || shown.length > previewLength ? '…' : '');
}

/** Every change of the message takes a new epoch, so the tag changes with it. */
export function messageTag({ version, epoch }: Readonly<{ version: number; epoch: bigint }>): string {
  return entityTagOf(version, epoch);
}

/** Also has what would make a list too long. */
export function presentWholeMessage(message: Message, masks: Masks): Json {
  const stack = masks.text(message.errorStack);
  return {
    ...presentMessage(message, masks),
    ...(stack === message.errorStack ? {} : { masked: true }),
    error_stack: stack,
  };
}

/** How the message is shown to the caller. Its original topic decides about that, and its rules are those of both topics. */
export function masksOf(
  masks: PayloadMasks,
  request: FastifyRequest,
  { originalTopic, sourceTopic }: Pick<Message, 'originalTopic' | 'sourceTopic'>,
): Masks {
  return masks.of(request, originalTopic, sourceTopic);
}

export function presentKey(key: Buffer | null): Json {
  if (key === null) return { key: null };
  return isText(key) ? { key: key.toString('utf8') } : { key: null, key_base64: key.toString('base64') };
}

/** UTF-8 without NUL. */
export function isText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}
