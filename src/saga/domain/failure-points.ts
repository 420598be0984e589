import { UNDO_ATTEMPTS } from './locate.ts';
import { referencesIn } from './mapping.ts';
import type { KnownServices } from './parse-workflow.ts';
import { pathText, type Reference } from './template.ts';
import type { Mapping, Step, Workflow } from './workflow.ts';

/**
 * Everything that can go wrong with a workflow, and what follows: for each step what is undone, in which order, or
 * that a person is needed. Answers to an undo are not in it: whatever the place, one that is refused, or whose end
 * stays unknown, waits for a person, and nothing is FAILED before it is undone.
 */
export type FailurePoint = Readonly<{
  /** Null before the first call. */
  step: string | null;
  failure: Failure;
  /** What is done by itself, in this order; where a person is needed, what follows once it is settled. */
  undo: readonly UndoStep[];
  person: PersonNeeded | null;
  /**
   * Where it ends without a person, or with one who says that the step was not done; nowhere after the pivot, where
   * it waits until it can go on.
   */
  ends: readonly End[];
}>;

/**
 * `refused`: a service has said no, or the call cannot be made. `in_doubt`: after all attempts nobody knows whether
 * the call had its effect. `aborted`: cancel, compensate or the deadline while the step runs, which then is done.
 */
export type Failure = 'refused' | 'in_doubt' | 'aborted';

export type End = 'FAILED' | 'CANCELLED';

export type UndoStep =
  | Readonly<{
      step: string;
      does: 'call';
      method: string;
      /** What the message lacks where the step's answer is not known. */
      leftOut: readonly string[];
    }>
  | Readonly<{ step: string; does: 'skip' }>
  /** The call cannot be made without the answer of the step. */
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
      const budget = index < pivot ? step.retry.maxAttempts : UNDO_ATTEMPTS;
      const isRepeated = services?.get(step.service)?.isIdempotent !== false;
      const doubt = `in doubt after ${isRepeated ? times(budget) : 'one call, which is never repeated,'}`;
      if (index > pivot) return stuckForward(step, doubt);
      const points = [refused(step, before), inDoubt(step, before, doubt)];
      return index < pivot ? [...points, aborted(step, before)] : points;
    }),
  ];
}

/** Cancel ends in one, compensate and the deadline in the other. */
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
    ? `the pivot is ${doubt}, and there is no way back from it`
    : `it is ${doubt} and has no compensate (\`compensate: none\` says that it needs none)`;
  return { ...point, undo: undoOfDone(before), person: { step: name, op: 'action', why } };
}

function stuckForward({ name }: Step, doubt: string): readonly FailurePoint[] {
  const stuck = (failure: Failure, why: string): FailurePoint => ({
    step: name,
    failure,
    undo: [],
    person: { step: name, op: 'action', why: `it is ${why}, and after the pivot it only goes forward` },
    ends: [],
  });
  return [stuck('refused', 'refused'), stuck('in_doubt', doubt)];
}

/** Whether a person is needed shows in what is to be undone. */
function settled(point: Omit<FailurePoint, 'person'>): FailurePoint {
  const asks = point.undo.find((each) => each.does === 'ask');
  return { ...point, person: asks ? { step: asks.step, op: 'compensate', why: asks.why } : null };
}

function undoOfDone(done: readonly Step[]): readonly UndoStep[] {
  return done.map((step) => undoOf(step, true)).reverse();
}

/** In doubt its answer is not known. */
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
      why: `its undo has ${pathText(inPath.reference)} in its path, which is not known in doubt`,
    };
  const leftOut = referencesOf(undoInput)
    .filter(isMissing)
    .map(({ at }) => at);
  return { step: name, does: 'call', method: undo.method, leftOut: [...new Set(leftOut)] };
}

const referencesOf = (mapping: Mapping | null): ReturnType<typeof referencesIn> =>
  mapping === null ? [] : referencesIn(mapping);
