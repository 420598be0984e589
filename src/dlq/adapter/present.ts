import { isUtf8 } from 'node:buffer';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import { rawJson } from '../../platform/http/raw-json.ts';
import type { Status } from '../domain/message.ts';
import type { Header } from '../domain/record.ts';
import type { PartitionAccount } from '../usecase/account-sources.ts';
import type { HistoryEntry, LastSeek, Message, MessageBody, TopicSummary } from '../usecase/ports.ts';

/** The slice's objects as JSON shows them: the fields that clients have always known first, ours after them. */

type Json = Readonly<Record<string, unknown>>;

const at = (instant: Date | null): string | null => (instant === null ? null : formatTimestamp(instant));

export function presentMessage(message: Message): Json {
  return {
    id: message.id,
    original_topic: message.originalTopic,
    error_message: message.errorMessage,
    retry_count: message.retryCount,
    max_retries: message.maxRetries,
    payload: message.payloadText === null ? null : rawJson(message.payloadText),
    status: message.status,
    created_at: at(message.createdAt),
    updated_at: at(message.updatedAt),
    last_retry_at: at(message.lastRetryAt),
    source_topic: message.sourceTopic,
    source_partition: message.sourcePartition,
    source_offset: message.sourceOffset,
    ...presentKey(message.key),
    error_class: message.errorClass,
    consumer_group: message.consumerGroup,
    original_partition: message.originalPartition,
    original_offset: message.originalOffset,
    original_timestamp: at(message.originalTimestamp),
    dialect: message.dialect,
    fingerprint: message.fingerprint,
    unroutable: message.unroutable,
    attempt_no: message.attemptNo,
    parent_id: message.parentId,
    resolution: message.resolution,
    archived: message.isArchived,
    ...(message.isPayloadOmitted ? { payload_omitted: true } : {}),
  };
}

/** One message by itself also shows what would make a list too long. */
export function presentWholeMessage(message: Message): Json {
  return { ...presentMessage(message), error_stack: message.errorStack };
}

function presentKey(key: Buffer | null): Json {
  if (key === null) return { key: null };
  return isText(key) ? { key: key.toString('utf8') } : { key: null, key_base64: key.toString('base64') };
}

/** The record's bytes, all of them, and as text where they are text. */
export function presentRaw(id: string, raw: MessageBody): Json {
  return {
    id,
    key_base64: raw.key?.toString('base64') ?? null,
    value_base64: raw.value?.toString('base64') ?? null,
    ...(raw.key !== null && isText(raw.key) ? { key_text: raw.key.toString('utf8') } : {}),
    ...(raw.value !== null && isText(raw.value) ? { value_text: raw.value.toString('utf8') } : {}),
    headers: raw.headers.map(presentHeader),
  };
}

function presentHeader({ key, value }: Header): Json {
  return {
    key: isText(key) ? key.toString('utf8') : null,
    ...(isText(key) ? {} : { key_base64: key.toString('base64') }),
    value: value !== null && isText(value) ? value.toString('utf8') : null,
    ...(value === null ? {} : { value_base64: value.toString('base64') }),
  };
}

function isText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}

export function presentHistory(entry: HistoryEntry): Json {
  return {
    at: at(entry.at),
    event: entry.event,
    actor: entry.actor,
    reason: entry.reason,
    status_from: entry.statusFrom,
    status_to: entry.statusTo,
    retry_count: entry.retryCount,
    attempt_no: entry.attemptNo,
    topic: entry.topic,
    partition: entry.partition,
    offset: entry.offset,
    detail: entry.detail,
  };
}

export function presentTopic(summary: TopicSummary): Json {
  const count = (status: Status): bigint => summary.counts[status];
  return {
    topic: summary.topic,
    total: count('PENDING') + count('RETRYING') + count('RESOLVED') + count('DEAD'),
    counts: summary.counts,
    oldest_pending_at: at(summary.oldestPendingAt),
    arrived_per_minute: summary.arrivedPerMinute,
  };
}

export function presentSource(source: PartitionAccount): Json {
  return {
    topic: source.topic,
    partition: source.partition,
    topic_id: source.topicId,
    cluster_id: source.clusterId,
    position: source.nextOffset,
    end: source.logEnd,
    lag: source.lag,
    owner: source.leaseIsLive ? source.leaseOwner : null,
    state: stateOf(source),
    last_error: source.lastError,
    last_error_at: at(source.lastErrorAt),
    stored_at: at(source.storedAt),
    gaps: source.lost,
    first_offset: source.firstOffset,
    high_offset: source.highOffset,
    last_seek: source.lastSeek === null ? null : presentSeek(source.lastSeek),
  };
}

function presentSeek(seek: LastSeek): Json {
  return { ...seek, at: at(new Date(seek.at)), from: BigInt(seek.from), to: BigInt(seek.to) };
}

function stateOf(source: PartitionAccount): 'gone' | 'stopped' | 'reading' | 'waiting' {
  if (source.isGone) return 'gone';
  if (source.isStopped) return 'stopped';
  return source.leaseIsLive ? 'reading' : 'waiting';
}

export function presentAccount(account: PartitionAccount): Json {
  return {
    topic: account.topic,
    partition: account.partition,
    topic_id: account.topicId,
    first_offset: account.firstOffset,
    high_offset: account.highOffset,
    passed: account.passed,
    stored: account.stored,
    reopened: account.reopened,
    folded: account.folded,
    not_records: account.notRecords,
    lost: account.lost,
    reread: account.reread,
    balanced: account.isBalanced,
    broker_end: account.logEnd,
    lag: account.lag,
  };
}
