import type { Header } from '../../kernel/broker-record.ts';
import { isText, timestamp, type Json } from '../present.ts';
import type { MessageBody } from '../stored-message.ts';
import type { TopicSummary } from './list-topics.ts';
import type { HistoryEntry } from './message-history.ts';

/** All bytes of the record, also as text if they are text. */
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

export function presentHistory(entry: HistoryEntry): Json {
  return {
    at: timestamp(entry.at),
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
  const { PENDING, RETRYING, RESOLVED, DEAD } = summary.counts;
  return {
    topic: summary.topic,
    total: PENDING + RETRYING + RESOLVED + DEAD,
    counts: summary.counts,
    oldest_pending_at: timestamp(summary.oldestPendingAt),
    arrived_per_minute: summary.arrivedPerMinute,
  };
}
