import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { UsageError } from '../exit-code.ts';
import { ageColumn, lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import { formatAge } from '../output/format-age.ts';
import type { Column } from '../output/render-table.ts';
import { apiCommand, rowsAs } from '../slice/api-command.ts';
import type { Input, Values } from '../slice/define-command.ts';
import { wholeNumber } from '../whole-number.ts';

type Source = Readonly<{
  topic: string;
  partition: number;
  position: number;
  end: number | null;
  lag: number | null;
  owner: string | null;
  state: string;
  last_error: string | null;
  stored_at: string | null;
  gaps: number;
  stable_end: number | null;
  held_back_since: string | null;
}>;

type Account = Readonly<{
  topic: string;
  partition: number;
  first_offset: number;
  high_offset: number;
  passed: number;
  stored: number;
  reopened: number;
  folded: number;
  not_records: number;
  lost: number;
  reread: number;
  balanced: boolean;
  lag: number | null;
  control: number;
  aborted: number;
  gaps: number;
}>;

const place: readonly Input[] = [
  { flags: '<topic>', text: 'dead-letter topic' },
  { flags: '<partition>', text: 'partition number', parse: wholeNumber(0, 2_147_483_647) },
];
const reason: Input = { flags: '--reason <text>', text: 'reason, for the audit log', isRequired: true };

export const sources = apiCommand({
  name: 'sources',
  description: 'list the dead-letter partitions that are read, with position and lag',
  route: 'GET /api/v1/dlq/sources',
  examples: ['redrive dlq sources'],
  print: rowsAs<Source>(
    'sources',
    [
      textColumn('TOPIC', ({ topic }) => topic, 12),
      numberColumn('PARTITION', ({ partition }) => partition),
      textColumn('STATE', ({ state }) => state),
      numberColumn('POSITION', ({ position }) => position),
      optional(numberColumn('END', ({ end }) => end)),
      numberColumn('LAG', ({ lag }) => lag),
      {
        title: 'OPEN TRANSACTION',
        text: ({ held_back_since, stable_end }, now) =>
          held_back_since === null ? '-' : `at ${stable_end}, ${formatAge(held_back_since, now)}`,
        isOptional: true,
      },
      numberColumn('LOST', ({ gaps }) => gaps),
      optional(ageColumn('STORED', ({ stored_at }) => stored_at)),
      optional(textColumn('OWNER', ({ owner }) => owner, 10)),
      lastColumn('LAST ERROR', ({ last_error }) => last_error),
    ],
    'no partitions: `redrive doctor` shows the topics that match kafka.dlq_topic_pattern',
  ),
});

export const accounting = apiCommand<Readonly<{ balanced: boolean; partitions: readonly Account[] }>>({
  name: 'accounting',
  description: 'account for every offset read; fails if an offset is unexplained',
  route: 'GET /api/v1/dlq/accounting',
  examples: ['redrive dlq accounting'],
  print: printAccounts,
  isFailure: ({ balanced }) => !balanced,
});

/** Offsets without a record, counted by an earlier version that did not distinguish their kinds. */
const unclassifiedOf = ({ not_records, control, aborted, gaps }: Account): number =>
  not_records - control - aborted - gaps;

const accountColumns: readonly Column<Account>[] = [
  textColumn('TOPIC', ({ topic }) => topic, 20),
  numberColumn('PARTITION', ({ partition }) => partition),
  numberColumn('FIRST', ({ first_offset }) => first_offset),
  numberColumn('HIGH', ({ high_offset }) => high_offset),
  numberColumn('PASSED', ({ passed }) => passed),
  numberColumn('STORED', ({ stored }) => stored),
  numberColumn('REOPENED', ({ reopened }) => reopened),
  numberColumn('FOLDED', ({ folded }) => folded),
  numberColumn('CONTROL', ({ control }) => control),
  numberColumn('ABORTED', ({ aborted }) => aborted),
  numberColumn('GAPS', ({ gaps }) => gaps),
  numberColumn('LOST', ({ lost }) => lost),
  numberColumn('REREAD', ({ reread }) => reread),
  numberColumn('LAG', ({ lag }) => lag),
];

const balancedColumn: Column<Account> = {
  title: 'BALANCED',
  text: ({ balanced }) => (balanced ? 'yes' : 'NO'),
  tone: ({ balanced }) => (balanced ? 'good' : 'bad'),
};

function printAccounts(
  { partitions }: Readonly<{ partitions: readonly Account[] }>,
  { print }: ApiSession,
): void {
  if (partitions.length === 0) return print.note('no partition has been read yet');
  const hasUnclassified = partitions.some((account) => unclassifiedOf(account) > 0);
  const unclassified = hasUnclassified ? [numberColumn('NO RECORD', unclassifiedOf)] : [];
  print.table([...accountColumns, ...unclassified, balancedColumn], partitions);
}

export const seek = apiCommand<Readonly<{ message: string }>>({
  name: 'seek',
  description: 'read a partition again from an offset; stored messages are not stored twice',
  route: 'POST /api/v1/dlq/sources/{topic}/{partition}/seek',
  inputs: [
    ...place,
    {
      flags: '--offset <number>',
      text: 'start at this offset',
      parse: wholeNumber(0, Number.MAX_SAFE_INTEGER),
      conflicts: ['timestamp', 'earliest'],
    },
    {
      flags: '--timestamp <time>',
      text: 'start at the first record at or after this ISO 8601 time',
      conflicts: ['offset', 'earliest'],
    },
    { flags: '--earliest', text: 'start at the first record that the broker still has' },
    reason,
  ],
  examples: [
    "redrive dlq seek orders.dlq.v1 0 --offset 1042 --reason 'restored from a backup'",
    "redrive dlq seek orders.dlq.v1 0 --timestamp 2026-02-20T10:30:00Z --reason 'restored from a backup'",
  ],
  before: requireStart,
  print: printMessage,
});

async function requireStart(_session: ApiSession, { offset, timestamp, earliest }: Values): Promise<void> {
  if (offset === undefined && timestamp === undefined && earliest === undefined)
    throw new UsageError('no start: give --offset, --timestamp or --earliest');
}

export const forget = apiCommand<Readonly<{ message: string }>>({
  name: 'forget',
  description: 'remove a partition whose topic or cluster no longer exists; its messages stay',
  route: 'DELETE /api/v1/dlq/sources/{topic}/{partition}',
  inputs: [...place, reason],
  examples: ["redrive dlq forget orders.dlq.v1 0 --reason 'the old cluster was shut down'"],
  print: printMessage,
});

function printMessage({ message }: Readonly<{ message: string }>, { print }: ApiSession): void {
  print.line(escapeText(message));
}
