import type { InboxGroup } from '../../../kernel/inbox/inbox-group.ts';
import type { InboxPart } from '../../../platform/work/inbox-part.ts';
import { accountSources, type SourceAccount } from '../../sources.ts';

/** Dead-letter partitions that are not read, and those whose records do not add up. Of the whole system. */
export const sourcesForInbox: InboxPart = {
  slice: 'system',
  kinds: {
    ingest: { permission: 'dlq:sources:view', dimension: null },
    accounting: { permission: 'dlq:sources:view', dimension: null },
  },
  async read(db, asked) {
    const sources = await accountSources(db);
    const groups = sources.flatMap((source) => [
      ...(asked.has('ingest') ? ingestEntry(source) : []),
      ...(asked.has('accounting') ? accountingEntry(source) : []),
    ]);
    return { groups: groups.slice(0, maxSources), isPartial: groups.length > maxSources };
  },
};

const maxSources = 1000;
const shownError = 400;
/** An open transaction delays reading for so long at least before it needs attention. */
const blockedSeconds = 300;

function ingestEntry(source: SourceAccount): readonly InboxGroup[] {
  const why = whyNotRead(source);
  if (why === null) return [];
  const behind = Number(source.lag ?? 0n);
  return [groupOf(source, { kind: 'ingest', title: why, count: Math.max(1, behind) })];
}

function whyNotRead(source: SourceAccount): string | null {
  const { topic, partition, lastError } = source;
  const name = `${topic}/${partition}`;
  const error = (lastError ?? 'no error noted').slice(0, shownError);
  if (source.isGone) return null;
  if (source.isStopped) return `reading ${name} is stopped: ${error}`;
  if (source.blockedSeconds > blockedSeconds) return `an open transaction has blocked reading ${name}`;
  if (source.leaseIsLive || source.lag === null || source.lag === 0n) return null;
  return lastError === null ? `nobody reads ${name}` : `reading ${name} fails: ${error}`;
}

function accountingEntry(source: SourceAccount): readonly InboxGroup[] {
  if (source.isBalanced) return [];
  const { topic, partition, passed, explained } = source;
  const difference = passed > explained ? passed - explained : explained - passed;
  const title = `the records of ${topic}/${partition} do not add up: ${passed} read, ${explained} accounted for`;
  return [groupOf(source, { kind: 'accounting', title, count: Number(difference) })];
}

function groupOf(
  { topic, topicId, partition, lastErrorAt, blockedSince, storedAt }: SourceAccount,
  { kind, title, count }: Pick<InboxGroup, 'kind' | 'title' | 'count'>,
): InboxGroup {
  const since = kind === 'ingest' ? (blockedSince ?? lastErrorAt ?? storedAt) : storedAt;
  return {
    kind,
    slice: 'system',
    key: [topicId, String(partition)],
    title,
    place: { topic, partition },
    names: {},
    count,
    oldestAt: since,
    newestAt: null,
    firstAt: null,
    arrivals: null,
    danger: null,
    verb: { action: 'check_source', permission: 'dlq:sources:manage' },
    link: '/system',
    samples: [],
  };
}
