import { referencesIn } from './mapping.ts';
import { didYouMean, shorten } from './read-fields.ts';
import type { Reference } from './template.ts';
import type { Flaw, Mapping, Step } from './workflow.ts';

/** What holds between steps: names that are not there twice, one pivot, and references that can be known by then. */
export function checkSteps(steps: readonly Step[]): readonly Flaw[] {
  return [...checkNames(steps), ...checkPivot(steps), ...checkReferences(steps)];
}

function checkNames(steps: readonly Step[]): readonly Flaw[] {
  const seen = new Set<string>();
  return steps.flatMap(({ name }) => {
    const isTwice = name !== '' && seen.has(name);
    seen.add(name);
    return isTwice ? [{ step: name, field: 'name', message: 'must not be there twice' }] : [];
  });
}

function checkPivot(steps: readonly Step[]): readonly Flaw[] {
  const first = steps.findIndex(({ isPivot }) => isPivot);
  if (first === -1) return [];
  const pivot = nameOf(steps, first);
  return steps.slice(first).flatMap((step, offset) => {
    const name = nameOf(steps, first + offset);
    const flaws: Flaw[] = [];
    if (step.isPivot && offset > 0)
      flaws.push({ step: name, field: 'pivot', message: `must not be a second pivot after ${pivot}` });
    if (step.undo.kind !== 'absent') {
      const message =
        offset === 0
          ? 'must not be on the pivot: there is no way back from it'
          : `must not come after the pivot ${pivot}: from there it only goes forward`;
      flaws.push({ step: name, field: 'compensate', message });
    }
    return flaws;
  });
}

function checkReferences(steps: readonly Step[]): readonly Flaw[] {
  const positions = new Map<string, number>();
  for (const [index, { name }] of steps.entries()) if (!positions.has(name)) positions.set(name, index);
  return steps.flatMap((step, index) =>
    referencesOf(step).flatMap(({ field, isUndo, reference }) => {
      const message = flawOf(reference, { index, isUndo, positions });
      return message === null ? [] : [{ step: nameOf(steps, index), field, message }];
    }),
  );
}

type Where = Readonly<{ index: number; isUndo: boolean; positions: ReadonlyMap<string, number> }>;

function flawOf(reference: Reference, { index, isUndo, positions }: Where): string | null {
  if (reference.root !== 'steps')
    return reference.root === 'input' || isUndo
      ? null
      : 'refers to own, the answer to this very call: only an undo has it';
  const { step } = reference;
  const position = positions.get(step);
  const name = shorten(step);
  if (position === undefined)
    return `refers to step ${name}, which there is not${didYouMean(step, positions.keys())}`;
  if (position < index) return null;
  if (position > index) return `refers to step ${name}, which comes later`;
  return isUndo
    ? 'refers to its own step: write own'
    : `refers to its own step, which has no answer before it is called`;
}

type StepReference = Readonly<{ field: string; isUndo: boolean; reference: Reference }>;

/** Everything that a step refers to, in its paths too. */
function referencesOf(step: Step): readonly StepReference[] {
  const { method, undo, input, undoInput } = step;
  return [
    ...inField('method', method),
    ...inField('input', input),
    ...inField('compensate', undo.kind === 'call' ? undo.method : null),
    ...inField('compensate_input', undoInput),
  ].map(({ field, reference }) => ({ field, reference, isUndo: field.startsWith('compensate') }));
}

/** The later steps, by their action or their undo, that copy from the answer of this one: it cannot be skipped. */
export function stepsThatNeed(steps: readonly Step[], name: string): readonly string[] {
  return steps
    .filter((step) =>
      referencesOf(step).some(({ reference }) => reference.root === 'steps' && reference.step === name),
    )
    .map((step) => step.name);
}

function inField(
  field: string,
  mapping: Mapping | null,
): readonly Readonly<{ field: string; reference: Reference }>[] {
  if (mapping === null) return [];
  return referencesIn(mapping).map(({ at, reference }) => ({
    field: at === '' ? field : `${field}.${at}`,
    reference,
  }));
}

function nameOf(steps: readonly Step[], index: number): string {
  return steps[index]?.name || `#${index + 1}`;
}
