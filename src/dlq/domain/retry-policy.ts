import { backoffMs } from '../../kernel/backoff.ts';
import { dayMs } from '../../kernel/duration.ts';
import type { RedriveState } from './redrive.ts';

/**
 * A retry policy: messages that match it are retried automatically. The state of a policy changes like this:
 *
 *   active   --pause-->   paused   --resume--> active
 *   active   --disable--> disabled --resume--> active
 *   paused   --disable--> disabled
 *
 * `disabled` needs attention: too many of its messages came back, so only a person resumes it.
 *
 * An active policy works in rounds, one after the other. A round makes a redrive of the messages that are due, starts it
 * when it is planned, and is closed when the redrive has ended. Every step is a function of what the database says, so
 * any process can continue with it.
 */
export const policyStates = ['active', 'paused', 'disabled'] as const;
export type PolicyState = (typeof policyStates)[number];

/** What a person does to a policy. */
export const policyCommands = ['pause', 'resume'] as const;
export type PolicyCommand = (typeof policyCommands)[number];
export type PolicyChange = PolicyCommand | 'disable';

const legal: Readonly<Record<PolicyChange, Readonly<{ from: readonly PolicyState[]; to: PolicyState }>>> = {
  pause: { from: ['active'], to: 'paused' },
  resume: { from: ['paused', 'disabled'], to: 'active' },
  disable: { from: ['active', 'paused'], to: 'disabled' },
};

export function changePolicy(state: PolicyState, change: PolicyChange): PolicyState | null {
  return legal[change].from.includes(state) ? legal[change].to : null;
}

export function policyStatesBefore(change: PolicyChange): readonly PolicyState[] {
  return legal[change].from;
}

/** The redrive of the open round. */
export type RoundRedrive = Readonly<{
  state: RedriveState;
  /** A cancelled redrive has ended when it has its receipt. */
  hasReceipt: boolean;
  /** How many messages its plan selected. */
  selected: number;
  /** It stopped because too many messages came back, not because of an outage. */
  isStoppedByCanary: boolean;
}>;

export type PolicyFacts = Readonly<{
  state: PolicyState;
  /** The configuration of the process that looks after the policies has it. */
  isConfigured: boolean;
  /** Null if no round is open; `gone` if its redrive was deleted. */
  round: RoundRedrive | 'gone' | null;
  /** Neither the pause after a failed round nor the time between two rounds is running. */
  isRested: boolean;
}>;

export const policySteps = [
  /** Nothing to do now. */
  'wait',
  /** Make a redrive of what is due; nothing if nothing is. */
  'make',
  'start',
  /** The plan failed or selected nothing: delete the redrive, and close the round. */
  'discard',
  /** The redrive stopped because of an outage: cancel it, and wait before the next round. */
  'give_up',
  /** The policy was removed from the configuration before its redrive was started. */
  'withdraw',
  /** The redrive was stopped by its canary. */
  'disable',
  'close',
] as const;
export type PolicyStep = (typeof policySteps)[number];

/** What to do next for a policy. */
export function nextStep({ state, isConfigured, round, isRested }: PolicyFacts): PolicyStep {
  const isWorking = state === 'active' && isConfigured;
  if (round === null) return isWorking && isRested ? 'make' : 'wait';
  if (round === 'gone') return 'close';
  switch (round.state) {
    case 'planning':
    // Policies need no approval: they are part of the configuration.
    case 'awaiting_approval':
    case 'running':
    case 'paused':
      return 'wait';
    case 'planned':
      if (round.selected === 0) return 'discard';
      if (!isConfigured) return 'withdraw';
      return isWorking ? 'start' : 'wait';
    case 'stopped':
      if (round.isStoppedByCanary) return state === 'disabled' ? 'wait' : 'disable';
      return isWorking ? 'give_up' : 'wait';
    case 'failed':
      return 'discard';
    case 'cancelled':
      return round.hasReceipt ? 'close' : 'wait';
    case 'finished':
    case 'expired':
      return 'close';
  }
}

/** Messages are archived after about as long. */
export const maxRetryDelayMs = 30 * dayMs;

export type RetryDelay = Readonly<{ delayMs: number; backoff: number }>;

/** How long after the end of its last attempt a message is due: `delay` × `backoff`^`retryCount`, at most 30 days. */
export function retryDelayMs({ delayMs, backoff }: RetryDelay, retryCount: number): number {
  return Math.min(maxRetryDelayMs, delayMs * backoff ** Math.min(Math.max(retryCount, 0), maxExponent));
}

/** 10 to this power, the largest backoff, is still a number. */
export const maxExponent = 100;

/** After this many outages or failed plans in a row, the time until the next round. */
export function roundPauseMs(failures: number): number {
  return failures <= 0 ? 0 : backoffMs({ initialMs: 60_000, maxMs: 3_600_000, jitter: 0 }, failures);
}

/** A round gathers what becomes due within this time, so that a trickle of failures does not make a redrive each. */
export function gatherMs({ delayMs }: Pick<RetryDelay, 'delayMs'>): number {
  return Math.min(60_000, Math.floor(delayMs / 10));
}
