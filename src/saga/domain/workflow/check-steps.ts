import { leadsSomewhere, referencesIn } from './mapping.ts';
import { didYouMean, shorten } from './read-fields.ts';
import { pathText, type Reference } from './template.ts';
import type { Flaw, Mapping, Step } from './workflow.ts';

/** Rules between steps: unique names, one pivot, and references only to earlier steps. */
export function checkSteps(steps: readonly Step[]): readonly Flaw[] {
  return [...checkNames(steps), ...checkPivot(steps), ...checkReferences(steps)];
}

function checkNames(steps: readonly Step[]): readonly Flaw[] {
  const seen = new Set<string>();
  return steps.flatMap(({ name }) => {
    const isTwice = name !== '' && seen.has(name);
    seen.add(name);
    return isTwice ? [{ step: name, field: 'name', message: 'must be unique' }] : [];
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
          ? 'must not be set on the pivot, which cannot be undone'
          : `must not come after the pivot ${pivot}, after which no step can be undone`;
      flaws.push({ step: name, field: 'compensate', message });
    }
    return flaws;
  });
}

function checkReferences(steps: readonly Step[]): readonly Flaw[] {
  const positions = new Map<string, number>();
  for (const [index, { name }] of steps.entries()) if (!positions.has(name)) positions.set(name, index);
  return steps.flatMap((step, index) =>
    referencesOf(step).flatMap(({ field, hasOwn, reference }) => {
      const message = flawOf(reference, { index, hasOwn, positions });
      return message === null ? [] : [{ step: nameOf(steps, index), field, message }];
    }),
  );
}

/** `hasOwn`: the step's own response is available there. */
type Where = Readonly<{ index: number; hasOwn: boolean; positions: ReadonlyMap<string, number> }>;

function flawOf(reference: Reference, { index, hasOwn, positions }: Where): string | null {
  if (reference.root !== 'steps')
    return reference.root === 'input' || hasOwn
      ? null
      : 'refers to own, which only compensate and poll can use';
  const { step } = reference;
  const position = positions.get(step);
  const name = shorten(step);
  if (position === undefined)
    return `refers to step ${name}, which does not exist${didYouMean(step, positions.keys())}`;
  if (position < index) return null;
  if (position > index) return `refers to step ${name}, which comes later`;
  return hasOwn ? 'refers to its own step: write own' : `refers to its own step, which has no response yet`;
}

type StepReference = Readonly<{ field: string; hasOwn: boolean; reference: Reference }>;

/** All references of a step, including those in its paths. */
function referencesOf(step: Step): readonly StepReference[] {
  const { method, undo, poll = null, input, undoInput } = step;
  return [
    ...inField('method', method),
    ...inField('input', input),
    ...inField('poll', poll),
    ...inField('compensate', undo.kind === 'call' ? undo.method : null),
    ...inField('compensate_input', undoInput),
  ].map(({ field, reference }) => ({ field, reference, hasOwn: /^(?:compensate|poll)/.test(field) }));
}

/** The later steps whose action or undo refers to the response of this one, which therefore cannot be skipped. */
export function stepsThatNeed(steps: readonly Step[], name: string): readonly string[] {
  return steps
    .filter((step) =>
      referencesOf(step).some(({ reference }) => reference.root === 'steps' && reference.step === name),
    )
    .map((step) => step.name);
}

/**
 * What later steps refer to and this response lacks: `${steps.mail.id} in input.id of report`. The input of an undo may
 * omit values, its path may not.
 */
export function missingIn(steps: readonly Step[], name: string, answer: unknown): readonly string[] {
  const sources = { input: null, outputs: { [name]: answer } };
  return steps.flatMap((step) =>
    referencesOf(step)
      .filter(({ reference, field }) => {
        const isOfAnswer = reference.root === 'steps' && reference.step === name;
        return isOfAnswer && !field.startsWith('compensate_input') && !leadsSomewhere(reference, sources);
      })
      .map(({ reference, field }) => `${pathText(reference)} in ${field} of ${step.name}`),
  );
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
