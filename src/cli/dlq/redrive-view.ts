import type { ApiSession } from '../api/api-session.ts';
import { lastColumn, numberColumn, textColumn } from '../output/columns.ts';
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
    options: Readonly<{ rate_per_second: number | null; order: string; reopen?: boolean }>;
    came_back_after: number;
    counts: Counts;
    excluded: readonly Readonly<{ reason: string; count: number }>[];
    targets: readonly Readonly<{ topic: string; count: number; groups: readonly string[] }>[];
    fingerprints: readonly Readonly<{ fingerprint: string | null; count: number }>[];
    keys: Readonly<{ distinct: number; longest: number; without_key: number }> | null;
    rate_now: number | null;
    eta_seconds: number | null;
    created_at: string;
    started_at: string | null;
    finished_at: string | null;
    receipt: Readonly<{ sha256: string; counts: Counts }> | null;
  }>;

export const redriveId = idInput({ what: 'redrive', route: 'GET /api/v1/dlq/redrives/ids' });
export const example = '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31';
export const showRoute = 'GET /api/v1/dlq/redrives/{id}';
export const reason: Input = { flags: '--reason <text>', text: 'reason, for the record' };

/** How often a redrive that is followed is read. */
export const pollMs = 500;

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
    ['created', instantFact(redrive.created_at, now)],
    ['started', instantFact(redrive.started_at, now)],
    ['finished', instantFact(redrive.finished_at, now)],
    ...countFacts(counts),
    ...planFacts(redrive),
    ['sha256', redrive.receipt?.sha256 ?? null],
  ]);
  showRows(print, 'targets', targetColumns, redrive.targets);
  showRows(print, 'excluded', exclusionColumns, redrive.excluded);
}

const targetColumns: readonly Column<Redrive['targets'][number]>[] = [
  textColumn('TOPIC', ({ topic }) => topic, 12),
  numberColumn('MESSAGES', ({ count }) => count),
  lastColumn('CONSUMER GROUPS', ({ groups }) => groups.join(', ')),
];

const exclusionColumns: readonly Column<Redrive['excluded'][number]>[] = [
  textColumn('REASON', (exclusion) => exclusion.reason),
  numberColumn('MESSAGES', ({ count }) => count),
];

function planFacts({ state, keys, fingerprints, eta_seconds: seconds }: Redrive): readonly Fact[] {
  const isOpen = state === 'planned' || state === 'running';
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
