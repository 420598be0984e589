import type { Header } from '../../kernel/broker-record.ts';
import type { Masks } from '../../kernel/protect/protection.ts';
import { redriveIdOf } from '../domain/redrive.ts';
import type { PolicyState } from '../domain/retry-policy.ts';
import { isText, timestamp, type Json } from '../present.ts';
import type { MessageBody } from '../stored-message.ts';
import type { TopicSummary } from './topics/list-topics.ts';
import type { HistoryEntry } from './message-history.ts';
import type { VersionFacts, VersionSummary, WholeVersion } from './read-versions.ts';

/** All bytes of a version, also as text if they are text. */
export function presentRaw(id: string, raw: MessageBody & Readonly<{ version: number }>): Json {
  return { id, ...presentBody(raw), version: raw.version };
}

function presentBody(raw: MessageBody): Json {
  return {
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

function presentVersionFacts({ version, target, actor, reason, createdAt }: VersionFacts): Json {
  return { version, target_topic: target, actor, reason, created_at: timestamp(createdAt) };
}

export function presentVersion(summary: VersionSummary): Json {
  return {
    ...presentVersionFacts(summary),
    key_bytes: summary.keyBytes,
    value_bytes: summary.valueBytes,
    header_count: summary.headerCount,
  };
}

export function presentWholeVersion(id: string, version: WholeVersion): Json {
  return { id, ...presentVersionFacts(version), ...presentBody(version) };
}

export function presentHistory(entry: HistoryEntry, masks: Masks): Json {
  return {
    at: timestamp(entry.at),
    event: entry.event,
    actor: entry.actor,
    reason: masks.text(entry.reason),
    status_from: entry.statusFrom,
    status_to: entry.statusTo,
    retry_count: entry.retryCount,
    attempt_no: entry.attemptNo,
    topic: entry.topic,
    partition: entry.partition,
    offset: entry.offset,
    detail: masks.text(entry.detail),
    redrive_id: redriveIdOf(entry),
    version: entry.version,
  };
}

/** A retry policy whose patterns match a topic. */
export type TopicPolicy = Readonly<{ name: string; state: PolicyState }>;

export function presentTopic(summary: TopicSummary, policies: readonly TopicPolicy[]): Json {
  const { PENDING, RETRYING, RESOLVED, DEAD } = summary.counts;
  return {
    topic: summary.topic,
    total: PENDING + RETRYING + RESOLVED + DEAD,
    counts: summary.counts,
    oldest_pending_at: timestamp(summary.oldestPendingAt),
    arrived_per_minute: summary.arrivedPerMinute,
    unroutable: summary.unroutable,
    sources: summary.sources,
    policies,
  };
}
