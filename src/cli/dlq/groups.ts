import { ageColumn, lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import { instantFact, showFacts, showRows, showText } from '../output/facts.ts';
import type { Column } from '../output/render-table.ts';
import { sparkline } from '../output/sparkline.ts';
import { apiCommand } from '../slice/api-command.ts';
import { listCommand } from '../slice/list-command.ts';
import { statuses } from './message.ts';

type Counts = Readonly<Record<string, number>>;

type Group = Readonly<{
  fingerprint: string;
  title: string;
  error_class: string | null;
  count: number;
  counts: Counts;
  first_at: string;
  last_at: string;
  topics: readonly string[];
  consumer_groups: readonly string[];
  trend: readonly number[];
  badges: readonly string[];
  sample_id: string | null;
  frame: string | null;
}>;

type Why = Readonly<{
  version: number | null;
  class: string | null;
  template: string | null;
  frame: string | null;
}>;
type TopKey = Readonly<{ key: string | null; key_base64?: string; count: number }>;
type TopicCounts = Readonly<{ topic: string; consumer_group: string | null; counts: Counts }>;
type GroupDetails = Group &
  Readonly<{ why: Why; top_keys: readonly TopKey[]; by_topic: readonly TopicCounts[] }>;

/** Enough for a person, and for the server to find the whole. */
const shownDigits = 'v2:'.length + 8;

const trendColumn: Column<Group> = {
  title: 'LAST 24 HOURS',
  text: ({ trend }) => sparkline(trend),
  isOnlyOnTerminals: true,
  isOptional: true,
};

function countColumns<Row extends Readonly<{ counts: Counts }>>(): readonly Column<Row>[] {
  return statuses.map((status) => numberColumn<Row>(status, ({ counts }) => counts[status] ?? 0));
}

export const groups = listCommand<Group>({
  name: 'groups',
  description: 'list failures grouped by their cause, the latest first',
  route: 'GET /api/v1/dlq/groups',
  items: 'groups',
  inputs: [
    { flags: '--topic <topic>', text: 'only messages of this original topic' },
    { flags: '--status <status>', text: 'only messages in this status', choices: statuses },
    { flags: '--consumer-group <group>', text: 'only messages of this consumer group' },
    { flags: '--error-class <class>', text: 'only groups of this error class' },
  ],
  examples: ['redrive dlq groups', 'redrive dlq groups --topic orders.v1 --status DEAD'],
  unused: ['consumer_groups', 'sample_id', 'frame'],
  columns: [
    textColumn('GROUP', ({ fingerprint }) => fingerprint.slice(0, shownDigits)),
    numberColumn('COUNT', ({ count }) => count),
    ...countColumns<Group>().map(optional),
    ageColumn('LAST', ({ last_at }) => last_at),
    optional(ageColumn('FIRST', ({ first_at }) => first_at)),
    trendColumn,
    optional(textColumn('BADGES', ({ badges }) => badges.join(' '))),
    optional(textColumn('TOPICS', ({ topics }) => topics.join(' '), 9)),
    lastColumn('ERROR', ({ error_class, title }) =>
      error_class === null || error_class === title ? title : `${error_class}: ${title}`,
    ),
  ],
});

export const group = apiCommand<GroupDetails>({
  name: 'group',
  description: 'show a group of failures: what they have in common, and where they are',
  route: 'GET /api/v1/dlq/groups/{fingerprint}',
  inputs: [
    { flags: '<fingerprint>', text: 'fingerprint, or at least its first 4 characters if no other has them' },
  ],
  examples: ['redrive dlq group v2:3b0e6c1f', 'redrive dlq group 3b0e6c1f'],
  print(found, { print, now }) {
    showFacts(print, [
      ['fingerprint', found.fingerprint],
      ['messages', statuses.map((status) => `${found.counts[status] ?? 0} ${status}`).join(', ')],
      ['badges', found.badges.length === 0 ? null : found.badges.join(', ')],
      ['first', instantFact(found.first_at, now)],
      ['last', instantFact(found.last_at, now)],
      ['last 24 hours', found.trend.join(' ')],
      ['class', found.why.class],
      ['frame', found.why.frame],
      ['rules', found.why.version === null ? null : `version ${found.why.version}`],
      ['newest message', found.sample_id],
    ]);
    showText(print, 'error', found.title);
    showRows(print, 'topics', topicColumns, found.by_topic);
    showRows(print, 'most frequent keys', keyColumns, found.top_keys);
  },
});

const topicColumns: readonly Column<TopicCounts>[] = [
  textColumn('TOPIC', ({ topic }) => topic, 12),
  textColumn('CONSUMER GROUP', ({ consumer_group }) => consumer_group, 14),
  ...countColumns<TopicCounts>(),
];

const keyColumns: readonly Column<TopKey>[] = [
  numberColumn('COUNT', ({ count }) => count),
  lastColumn('KEY', ({ key, key_base64 }) =>
    key_base64 === undefined ? (key ?? 'no key') : `base64 ${key_base64}`,
  ),
];
