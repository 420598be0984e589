import { formatDuration } from '../../../kernel/duration.ts';
import { DEFAULT_UNDO_FOR_MS } from '../budget.ts';
import { referencesIn } from './mapping.ts';
import type { KnownServices } from './parse-workflow.ts';
import { pathText, type Reference } from './template.ts';
import type { Mapping, Step, Workflow } from './workflow.ts';

/**
 * Every way in which a workflow can fail, and what happens then: per step, what is undone in which order, or that the
 * saga needs attention. Failures of undos are not listed: an undo that is refused or stays unknown always needs
 * attention, and no saga is FAILED before everything is undone.
 */
export type FailurePoint = Readonly<{
  /** Null: before the first call. */
  step: string | null;
  failure: Failure;
  /** What is undone automatically, in this order; if the saga needs attention, after that is resolved. */
  undo: readonly UndoStep[];
  person: PersonNeeded | null;
  /**
   * The final status, automatically or if an operator resolves the step as not done. None after the pivot: the saga
   * waits until it can go forward.
   */
  ends: readonly End[];
}>;

/**
 * `refused`: the service refused, or the call cannot be made. `in_doubt`: after all attempts it is unknown whether the
 * call took effect. `aborted`: cancel, compensate or the deadline while the step runs, which then completes.
 */
export type Failure = 'refused' | 'in_doubt' | 'aborted';

export type End = 'FAILED' | 'CANCELLED';

export type UndoStep =
  | Readonly<{
      step: string;
      does: 'call';
      method: string;
      /** What the request omits if the step's response is unknown. */
      leftOut: readonly string[];
    }>
  | Readonly<{ step: string; does: 'skip' }>
  /** The call cannot be made without the response of the step. */
  | Readonly<{ step: string; does: 'ask'; why: string }>;

export type PersonNeeded = Readonly<{ step: string; op: 'action' | 'compensate'; why: string }>;

export function failurePoints(
  workflow: Workflow,
  services: KnownServices | null = null,
): readonly FailurePoint[] {
  const { steps } = workflow;
  const found = steps.findIndex(({ isPivot }) => isPivot);
  const pivot = found === -1 ? steps.length : found;
  return [
    { step: null, failure: 'aborted', undo: [], person: null, ends: abortEnds },
    ...steps.flatMap((step, index) => {
      const before = steps.slice(0, index);
      const { retry, undoForMs = DEFAULT_UNDO_FOR_MS } = step;
      const budget = index < pivot ? times(retry.maxAttempts) : `${formatDuration(undoForMs)} of attempts`;
      const isRepeated = services?.get(step.service)?.isIdempotent !== false;
      const doubt = `in doubt after ${isRepeated ? budget : 'one call, which is never repeated,'}`;
      if (index > pivot) return stuckForward(step, doubt);
      const points = [refused(step, before), inDoubt(step, before, doubt)];
      return index < pivot ? [...points, aborted(step, before)] : points;
    }),
  ];
}

/** Cancel ends as CANCELLED, compensate and the deadline as FAILED. */
const abortEnds: readonly End[] = ['CANCELLED', 'FAILED'];

const times = (attempts: number): string => (attempts === 1 ? '1 attempt' : `${attempts} attempts`);

function refused({ name }: Step, before: readonly Step[]): FailurePoint {
  return settled({ step: name, failure: 'refused', undo: undoOfDone(before), ends: ['FAILED'] });
}

function aborted(step: Step, before: readonly Step[]): FailurePoint {
  const undo = undoOfDone([...before, step]);
  return settled({ step: step.name, failure: 'aborted', undo, ends: abortEnds });
}

function inDoubt(step: Step, before: readonly Step[], doubt: string): FailurePoint {
  const { name, undo, isPivot } = step;
  const point = { step: name, failure: 'in_doubt', ends: ['FAILED'] } as const;
  if (undo.kind !== 'absent')
    return settled({ ...point, undo: [undoOf(step, false), ...undoOfDone(before)] });
  const why = isPivot
    ? `the pivot is ${doubt} and cannot be undone`
    : `it is ${doubt} and has no compensate (\`compensate: none\` says that it needs none)`;
  return { ...point, undo: undoOfDone(before), person: { step: name, op: 'action', why } };
}

function stuckForward({ name }: Step, doubt: string): readonly FailurePoint[] {
  const stuck = (failure: Failure, why: string): FailurePoint => ({
    step: name,
    failure,
    undo: [],
    person: { step: name, op: 'action', why: `it is ${why}, and steps after the pivot cannot be undone` },
    ends: [],
  });
  return [stuck('refused', 'refused'), stuck('in_doubt', doubt)];
}

/** The saga needs attention if one of the undos does. */
function settled(point: Omit<FailurePoint, 'person'>): FailurePoint {
  const asks = point.undo.find((each) => each.does === 'ask');
  return { ...point, person: asks ? { step: asks.step, op: 'compensate', why: asks.why } : null };
}

function undoOfDone(done: readonly Step[]): readonly UndoStep[] {
  return done.map((step) => undoOf(step, true)).reverse();
}

/** The response of a step in doubt is unknown. */
function undoOf(step: Step, isAnswered: boolean): UndoStep {
  const { name, undo, undoInput } = step;
  if (undo.kind !== 'call') return { step: name, does: 'skip' };
  const isMissing = ({ reference }: Readonly<{ reference: Reference }>): boolean =>
    !isAnswered && reference.root === 'own';
  const inPath = referencesOf(undo.method).find(isMissing);
  if (inPath !== undefined)
    return {
      step: name,
      does: 'ask',
      why: `its undo has ${pathText(inPath.reference)} in its path, which is unknown if the step is in doubt`,
    };
  const leftOut = referencesOf(undoInput)
    .filter(isMissing)
    .map(({ at }) => at);
  return { step: name, does: 'call', method: undo.method, leftOut: [...new Set(leftOut)] };
}

const referencesOf = (mapping: Mapping | null): ReturnType<typeof referencesIn> =>
  mapping === null ? [] : referencesIn(mapping);
