/**
 * A redrive: a planned bulk retry. Its state changes like this:
 *
 *   planning --planned-->  planned --start--> running --finish--> finished
 *            --fail-->     failed          --pause--> paused  --resume--> running
 *                                          --stop-->  stopped --resume--> running
 *   planning, planned --await_approval--> awaiting_approval --start--> running
 *   planned, awaiting_approval --expire--> expired
 *   planning, planned, awaiting_approval, running, paused, stopped --cancel--> cancelled
 *
 * A large plan awaits the approval of a second person (see `approval.ts`); without it the start is refused.
 * `stopped` is an outage that lasted too long: it needs attention. Only a running redrive claims messages. What it has
 * claimed is settled in every state.
 */
export const redriveStates = [
  'planning',
  'planned',
  'awaiting_approval',
  'running',
  'paused',
  'stopped',
  'finished',
  'cancelled',
  'failed',
  'expired',
] as const;
export type RedriveState = (typeof redriveStates)[number];

/** Why a redrive stopped: a target accepted nothing for too long, or its canary. */
export type StoppedBy = 'outage' | 'canary';

/** Names the redrive in the history of a message. */
export function redriveDetail(id: string): string {
  return `redrive ${id}`;
}

/** The events that a redrive writes; the detail of others may be any text. */
const redriveEvents: ReadonlySet<string> = new Set(['retry_started', 'reopened', 'marked_dead', 'deleted']);

/** The redrive that an entry of a message's history names; null without one. */
export function redriveIdOf({
  event,
  detail,
}: Readonly<{ event: string; detail: string | null }>): string | null {
  if (!redriveEvents.has(event)) return null;
  return /^redrive ([0-9a-f-]{36})$/.exec(detail ?? '')?.[1] ?? null;
}

/** A plan that nobody starts for this long no longer says what is there. */
export const planLifeHours = 24;

/** What a person does to a redrive. */
export const redriveCommands = ['start', 'pause', 'resume', 'cancel'] as const;
export type RedriveCommand = (typeof redriveCommands)[number];

export const redriveChanges = [
  ...redriveCommands,
  'planned',
  'await_approval',
  'fail',
  'expire',
  'stop',
  'finish',
] as const;
export type RedriveChange = (typeof redriveChanges)[number];

const legal: Readonly<Record<RedriveChange, Readonly<{ from: readonly RedriveState[]; to: RedriveState }>>> =
  {
    planned: { from: ['planning'], to: 'planned' },
    fail: { from: ['planning'], to: 'failed' },
    await_approval: { from: ['planning', 'planned'], to: 'awaiting_approval' },
    expire: { from: ['planned', 'awaiting_approval'], to: 'expired' },
    start: { from: ['planned', 'awaiting_approval'], to: 'running' },
    pause: { from: ['running'], to: 'paused' },
    stop: { from: ['running'], to: 'stopped' },
    resume: { from: ['paused', 'stopped'], to: 'running' },
    finish: { from: ['running'], to: 'finished' },
    cancel: {
      from: ['planning', 'planned', 'awaiting_approval', 'running', 'paused', 'stopped'],
      to: 'cancelled',
    },
  };

/** The states in which the change is legal, for the WHERE of its UPDATE. */
export function statesBefore(change: RedriveChange): readonly RedriveState[] {
  return legal[change].from;
}

export function stateAfter(change: RedriveChange): RedriveState {
  return legal[change].to;
}

export function changeState(state: RedriveState, change: RedriveChange): RedriveState | null {
  return legal[change].from.includes(state) ? legal[change].to : null;
}

/** No change is legal any more. */
export function hasEnded(state: RedriveState): boolean {
  return redriveChanges.every((change) => changeState(state, change) === null);
}
