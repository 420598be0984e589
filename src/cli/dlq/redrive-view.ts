import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import { instantFact, showFacts, showRows, type Fact } from '../output/facts.ts';
import { formatSeconds } from '../output/progress.ts';
import type { Column, Tone } from '../output/render-table.ts';
import type { Input } from '../slice/define-command.ts';
import { idInput } from '../slice/item-id.ts';
import { requestOf } from '../slice/request-of.ts';
import { canaryFacts, type Staged } from './canary.ts';

export type Counts = Readonly<Record<string, number>>;

/** The fields of a redrive that the commands read. */
export type Redrive = Staged &
  Readonly<{
    id: string;
    kind: string;
    state: string;
    state_reason: string | null;
    reason: string;
    actor: string;
    owner: string | null;
    options: Readonly<{ rate_per_second: number | null; order: string; reopen?: boolean }>;
    came_back_after: number;
    counts: Counts;
    excluded: readonly Readonly<{ reason: string; count: number }>[];
    overlaps: readonly Readonly<{ redrive_id: string; count: number }>[];
    targets: readonly Target[];
    groups_error: string | null;
    fingerprints: readonly Readonly<{ fingerprint: string | null; count: number }>[];
    keys: Readonly<{ distinct: number; longest: number; without_key: number }> | null;
    rate_now: number | null;
    eta_seconds: number | null;
    created_at: string;
    started_at: string | null;
    finished_at: string | null;
    receipt: Readonly<{ sha256: string; counts: Counts }> | null;
  }>;

type Target = Readonly<{
  topic: string;
  count: number;
  groups: readonly string[];
  failed_groups?: readonly string[];
}>;

export const redriveId = idInput({ what: 'redrive', route: 'GET /api/v1/dlq/redrives/ids' });
export const example = '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31';
export const showRoute = 'GET /api/v1/dlq/redrives/{id}';
export const reason: Input = { flags: '--reason <text>', text: 'reason, for the record' };

/** How often a redrive that is followed is read. */
const pollMs = 500;
/** Counting a million messages takes the server a while: at most a tenth of the time goes to it. */
const shareOfTime = 10;
/** The view must not look stuck. */
const maxPollMs = 10_000;

/** How long to wait before the next read, after one that began then. */
export function restMs(startedMs: number): number {
  return Math.min(maxPollMs, Math.max(pollMs, (performance.now() - startedMs) * shareOfTime));
}

export async function readRedrive(session: ApiSession, id: string): Promise<Redrive> {
  return (await session.call<Redrive>(requestOf(showRoute, [], { id }))).value;
}

export function printRedrive(redrive: Redrive, { print, now }: ApiSession): void {
  const { options, counts } = redrive;
  const { rate_per_second: limit } = options;
  showFacts(print, [
    ['id', redrive.id],
    ['kind', redrive.kind],
    ['state', redrive.state, toneOf(redrive)],
    ['state reason', redrive.state_reason],
    ['reason', `${redrive.reason} (${redrive.actor})`],
    ['rate', limit === null ? 'no limit' : `${limit} per second`],
    ['order', redrive.kind === 'retry' ? options.order : null],
    ['reopen', options.reopen === true ? 'dead messages and those without an attempt left' : null],
    ...canaryFacts(redrive),
    ['owner', redrive.owner],
    ['created', instantFact(redrive.created_at, now)],
    ['started', instantFact(redrive.started_at, now)],
    ['finished', instantFact(redrive.finished_at, now)],
    ...countFacts(counts),
    ...planFacts(redrive),
    ['sha256', redrive.receipt?.sha256 ?? null],
  ]);
  showRows(print, 'targets', targetColumns, redrive.targets);
  if (redrive.groups_error !== null)
    print.note(`who else reads these topics is not known: ${escapeText(redrive.groups_error)}`);
  showRows(print, 'excluded', exclusionColumns, redrive.excluded);
  showRows(print, 'overlaps', overlapColumns, redrive.overlaps);
}

const targetColumns: readonly Column<Target>[] = [
  textColumn('TOPIC', ({ topic }) => topic, 12),
  numberColumn('MESSAGES', ({ count }) => count),
  optional(textColumn('FAILED IN', ({ groups, failed_groups: failed }) => (failed ?? groups).join(', '), 10)),
  lastColumn('READ BY', ({ groups }) => groups.join(', ')),
];

const overlapColumns: readonly Column<Redrive['overlaps'][number]>[] = [
  textColumn('REDRIVE', (overlap) => overlap.redrive_id),
  numberColumn('MESSAGES', ({ count }) => count),
];

const exclusionColumns: readonly Column<Redrive['excluded'][number]>[] = [
  textColumn('REASON', (exclusion) => exclusion.reason),
  numberColumn('MESSAGES', ({ count }) => count),
];

function planFacts({ state, keys, fingerprints, eta_seconds: seconds }: Redrive): readonly Fact[] {
  const isOpen = state === 'planned' || state === 'awaiting_approval' || state === 'running';
  return [
    ['causes', fingerprints.length === 0 ? null : String(fingerprints.length)],
    [
      'keys',
      keys === null || keys.distinct === 0
        ? null
        : `${keys.distinct}, the longest has ${keys.longest} messages`,
    ],
    ['remaining time', seconds === null || !isOpen ? null : `about ${formatSeconds(seconds)}`],
  ];
}

/** Those that are not 0; `selected` always. */
export function countFacts(counts: Counts): readonly Fact[] {
  return Object.entries(counts)
    .filter(([name, count]) => count > 0 || name === 'selected')
    .map(([name, count]) => [name.replaceAll('_', ' '), count.toLocaleString('en')]);
}

export function toneOf({ state }: Readonly<{ state: string }>): Tone {
  if (state === 'finished') return 'good';
  return state === 'failed' || state === 'stopped' ? 'bad' : 'strong';
}
