import type { Redrive } from '../../../lib/server-shapes.ts';
import type { StatusRole } from '../../../lib/status/status-roles.ts';

type Counts = Redrive['counts'];
export type Outcome = Exclude<keyof Counts, 'selected' | 'excluded'>;

/** In the order of the meter. */
const outcomes: readonly (readonly [Outcome, StatusRole])[] = [
  ['waiting', 'queued'],
  ['in_flight', 'working'],
  ['published', 'working'],
  ['quiet', 'done'],
  ['applied', 'done'],
  ['came_back', 'attention'],
  ['failed', 'attention'],
  ['not_published', 'retry'],
  ['unknown', 'doubt'],
  ['skipped', 'ended'],
  ['cancelled', 'ended'],
];

/** Always shown for a retry, so that the figures keep their places. */
const usual: ReadonlySet<Outcome> = new Set([
  'waiting',
  'published',
  'quiet',
  'came_back',
  'failed',
  'skipped',
]);

export type OutcomeCount = Readonly<{ outcome: Outcome; count: number; role: StatusRole }>;

/** The parts of what was selected; they add up to it. */
export function outcomeCounts({ kind, counts }: Pick<Redrive, 'kind' | 'counts'>): readonly OutcomeCount[] {
  const isShown = (outcome: Outcome): boolean =>
    counts[outcome] > 0 ||
    (kind === 'retry' ? usual.has(outcome) : ['waiting', 'applied', 'failed'].includes(outcome));
  return outcomes
    .filter(([outcome]) => isShown(outcome))
    .map(([outcome, role]) => ({ outcome, count: counts[outcome], role }));
}

/** Of those that were published, in percent; null before the first. */
export function cameBackPercent({ counts }: Pick<Redrive, 'counts'>): number | null {
  const sent = counts.published + counts.quiet + counts.came_back;
  return sent === 0 ? null : (counts.came_back / sent) * 100;
}

export type RampStep = Readonly<{
  /** How many messages it ends at, in all; null: all of them. */
  bound: number | null;
  state: 'done' | 'sending' | 'watching' | 'waiting';
}>;

/** The stages of the canary and then the rest. */
export function rampSteps(
  redrive: Pick<Redrive, 'options' | 'stage' | 'watch_until' | 'state'>,
): readonly RampStep[] {
  const { options, stage, watch_until: watchUntil, state } = redrive;
  const bounds = [...(options.canary?.stages ?? []), null];
  return bounds.map((bound, i): RampStep => {
    const place = i + 1;
    if (state === 'finished' || (stage !== null && place < stage)) return { bound, state: 'done' };
    if (stage === null || place > stage) return { bound, state: 'waiting' };
    return { bound, state: watchUntil === null ? 'sending' : 'watching' };
  });
}

/** How long the sending takes at the rate, without the windows of the canary; null without a rate. */
export function sendingMs(messages: number, ratePerSecond: number | null): number | null {
  return ratePerSecond === null ? null : (messages / ratePerSecond) * 1000;
}

/** How long the windows of a canary last in all, for so many messages. */
export function watchingMs(messages: number, canary: Redrive['options']['canary']): number {
  if (canary === null || canary === undefined) return 0;
  const watched = canary.stages.filter(
    (bound, i) => (canary.stages[i - 1] ?? 0) < messages && bound > 0,
  ).length;
  return watched * canary.watch_seconds * 1000;
}

const moving: ReadonlySet<Redrive['state']> = new Set(['planning', 'running']);
const ended: ReadonlySet<Redrive['state']> = new Set(['finished', 'cancelled', 'failed', 'expired']);

/** Whether the server works on it, so that the figures change by themselves. The receipt follows the end. */
export function isMoving(redrive: Pick<Redrive, 'state' | 'counts' | 'started_at' | 'receipt'>): boolean {
  const { state, counts, started_at: startedAt, receipt } = redrive;
  return (
    moving.has(state) || counts.in_flight > 0 || (ended.has(state) && startedAt !== null && receipt === null)
  );
}

export function hasEnded({ state }: Pick<Redrive, 'state'>): boolean {
  return ended.has(state);
}
