/**
 * A canary: a redrive sends a few messages first, watches whether they come back as dead letters, and only then sends
 * more. Stage `n` of `stages` sends until that many messages have been acknowledged in all; the stage behind the last
 * one sends the rest. Each stage is watched after its last message:
 *
 *   draw -> send -> watch -> confirm -> next stage
 *                     \         \-- nobody confirms for ten windows: stop
 *                      \----------- too many come back, at any time: stop
 */
export type Canary = Readonly<{
  /** Cumulative numbers of acknowledged messages, ascending. */
  stages: readonly number[];
  watch_seconds: number;
  /** More than this share of a stage, or of the latest messages of the rest, stops the redrive. */
  stop_percent: number;
}>;

export const defaultCanary: Canary = { stages: [1, 5, 25], watch_seconds: 120, stop_percent: 10 };

/** After this many windows without confirmation the redrive stops: silence is not success. */
export const maxWindows = 10;
/** While the rest is sent, the share that came back is that of so many latest messages. */
export const latestCount = 200;

export type StageView = Readonly<{
  /** From 1; see `isRest` and `isClosed`. */
  stage: number;
  /** Messages that no stage has drawn yet. */
  hasUndrawn: boolean;
  /** Messages of the stages so far that have no outcome yet. */
  open: number;
  /** Messages of the stages so far that were published, whether or not they came back. */
  acked: number;
  /** How many messages the share is taken of; those that came back before a resume are left out. */
  sample: number;
  /** How many came back since the last resume. */
  returned: number;
  /** The time left of the window, negative after its end; null if it has not begun. */
  remainingMs: number | null;
  /** For how long this process has tried to confirm it. */
  confirmingMs: number;
}>;

export type CanaryStep =
  | Readonly<{ step: 'draw'; count: number }>
  /** Items of the stage wait or are in flight. */
  | Readonly<{ step: 'send' }>
  | Readonly<{ step: 'watch' }>
  | Readonly<{ step: 'wait'; ms: number }>
  /** The window is over: find out whether everybody concerned has seen the messages. */
  | Readonly<{ step: 'confirm'; isOverdue: boolean }>
  | Readonly<{ step: 'stop'; reason: string }>
  /** Nothing is left to send or to watch. */
  | Readonly<{ step: 'finish' }>;

/** The stage sends what the stages before it have left. */
export function isRest({ stages }: Canary, stage: number): boolean {
  return stage > stages.length;
}

/** The last window has closed. */
export function isClosed({ stages }: Canary, stage: number): boolean {
  return stage > stages.length + 1;
}

export function canaryStep(canary: Canary, view: StageView): CanaryStep {
  const { stage, hasUndrawn, open, acked, remainingMs, confirmingMs } = view;
  if (isClosed(canary, stage)) return { step: 'finish' };
  const reason = tooManyReturned(canary, view);
  if (reason !== null) return { step: 'stop', reason };
  if (open > 0) return { step: 'send' };
  const bound = canary.stages[stage - 1];
  if (bound !== undefined && acked < bound && hasUndrawn) return { step: 'draw', count: bound - acked };
  if (acked === 0) return { step: 'finish' };
  if (remainingMs === null) return { step: 'watch' };
  if (remainingMs > 0) return { step: 'wait', ms: remainingMs };
  return { step: 'confirm', isOverdue: confirmingMs >= (maxWindows - 1) * canary.watch_seconds * 1000 };
}

/** The stage after a window that has closed. */
export function stageAfter(
  canary: Canary,
  { stage, hasUndrawn }: Pick<StageView, 'stage' | 'hasUndrawn'>,
): number {
  return hasUndrawn ? stage + 1 : canary.stages.length + 2;
}

/** The time that the windows from this stage on take, for so many messages in all. */
export function watchSecondsLeft(canary: Canary, stage: number, messages: number): number {
  // Each stage that still has messages to send after the bound of the one before it.
  const begins = [0, ...canary.stages].slice(stage - 1).filter((bound) => bound < messages);
  return begins.length * canary.watch_seconds;
}

/** Null while the share is within the limit. */
export function tooManyReturned(
  { stop_percent: limit }: Canary,
  { sample, returned }: Pick<StageView, 'sample' | 'returned'>,
): string | null {
  if (returned * 100 <= limit * sample) return null;
  return `${returned} of ${sample} messages came back as dead letters; the limit is ${limit} %`;
}
