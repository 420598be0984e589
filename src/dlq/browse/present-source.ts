import { timestamp, type Json } from '../present.ts';
import type { LastSeek, SourceAccount } from '../sources.ts';
import type { Offenders, Verification } from './verify-source.ts';

export function presentSource(source: SourceAccount): Json {
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
    last_error_at: timestamp(source.lastErrorAt),
    stored_at: timestamp(source.storedAt),
    gaps: source.lost,
    first_offset: source.firstOffset,
    high_offset: source.highOffset,
    last_seek: source.lastSeek === null ? null : presentSeek(source.lastSeek),
    stable_end: source.logStableEnd,
    held_back_since: timestamp(source.blockedSince),
  };
}

function presentSeek(seek: LastSeek): Json {
  return { ...seek, at: timestamp(new Date(seek.at)), from: BigInt(seek.from), to: BigInt(seek.to) };
}

function stateOf(source: SourceAccount): 'gone' | 'stopped' | 'reading' | 'waiting' {
  if (source.isGone) return 'gone';
  if (source.isStopped) return 'stopped';
  return source.leaseIsLive ? 'reading' : 'waiting';
}

export function presentAccount(account: SourceAccount): Json {
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
    control: account.control,
    aborted: account.aborted,
    gaps: account.gaps,
  };
}

export function presentVerification(found: Verification): Json {
  const offenders = [found.missing, found.different, found.unexpected];
  return {
    topic: found.source.topic,
    partition: found.source.partition,
    topic_id: found.source.topicId,
    ok: offenders.every(({ count }) => count === 0),
    from: found.from,
    to: found.to,
    next: found.next,
    broker: { records: found.records, control: found.control, aborted: found.aborted, gaps: found.gaps },
    stored: {
      messages: found.messages,
      archived: found.archived,
      came_back: found.cameBack,
      deleted: found.deleted,
    },
    missing: presentOffenders(found.missing),
    different: presentOffenders(found.different),
    unexpected: presentOffenders(found.unexpected),
  };
}

function presentOffenders({ count, first }: Offenders): Json {
  return { count, offsets: first };
}
