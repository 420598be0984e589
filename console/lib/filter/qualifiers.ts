import type { Filter, Term } from './filter.ts';

/** A word before a colon, and the parameter of the API that it stands for. */
export type Qualifier = Readonly<{
  name: string;
  /**
   * `one`: any text, or one of `choices`. `choice`: one or more of `choices`, with commas between them. `time`: an age such as `2h`, or an
   * ISO date. `flag`: each choice is a parameter of its own that is true.
   */
  kind: 'one' | 'choice' | 'time' | 'flag';
  /** The parameter; for a flag, those of its choices in their order. */
  parameter: string | readonly string[];
  choices?: readonly string[];
  /** The parameter of excluded values; absent if they cannot be excluded. For a flag, `false` is sent instead. */
  excludedParameter?: string;
  /** Fields of the facets that have counted values to choose from. */
  facet?: string;
}>;

/** What one list can be filtered by. */
export type Qualifiers = Readonly<{
  qualifiers: readonly Qualifier[];
  /** The parameters of free text; null if the list has no search by text. */
  text: Readonly<{ parameter: string; excludedParameter?: string }> | null;
}>;

export type FilterProblem = Readonly<{
  code:
    | 'unknown_qualifier'
    | 'missing_value'
    | 'unknown_choice'
    | 'wrong_time'
    | 'not_excludable'
    | 'given_twice'
    | 'too_many'
    | 'no_text';
  term: Term;
  /** What could stand there instead. */
  allowed: readonly string[];
}>;

/** Parameters in the order of the terms, or what is wrong with the terms. */
export type FilterQuery =
  | Readonly<{ isValid: true; parameters: readonly (readonly [string, string])[] }>
  | Readonly<{ isValid: false; problems: readonly FilterProblem[] }>;

const maxExcluded = 10;
const unitsMs: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** The parameters of the API for a filter. Ages count back from `nowMs`. */
export function toQuery(filter: Filter, table: Qualifiers, nowMs: number): FilterQuery {
  const problems = findProblems(filter, table);
  if (problems.length > 0) return { isValid: false, problems };
  const words = filter.filter(({ qualifier, isExcluded }) => qualifier === null && !isExcluded);
  const parameters = filter.flatMap((term): (readonly [string, string])[] => {
    const qualifier = table.qualifiers.find(({ name }) => name === term.qualifier);
    if (qualifier !== undefined) return parametersOf(term, qualifier, nowMs);
    if (term.isExcluded) return [[table.text?.excludedParameter ?? '', term.value]];
    return term === words[0]
      ? [[table.text?.parameter ?? '', words.map(({ value }) => value).join(' ')]]
      : [];
  });
  return { isValid: true, parameters };
}

function parametersOf(term: Term, qualifier: Qualifier, nowMs: number): (readonly [string, string])[] {
  const { kind, parameter, choices = [], excludedParameter = '' } = qualifier;
  if (kind === 'flag')
    return [[parameter[choices.indexOf(term.value)] ?? '', term.isExcluded ? 'false' : 'true']];
  const name = term.isExcluded ? excludedParameter : String(parameter);
  if (kind === 'choice') return term.value.split(',').map((value) => [name, value] as const);
  return [[name, kind === 'time' ? (readTime(term.value, nowMs) ?? '') : term.value]];
}

/** An age or an ISO date as an ISO instant; null if it is neither. */
export function readTime(value: string, nowMs: number): string | null {
  const [, count, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(value) ?? [];
  if (count !== undefined) return isoOf(nowMs - Number(count) * (unitsMs[unit] ?? 0));
  if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/.test(value)) return null;
  return isoOf(Date.parse(value));
}

function isoOf(ms: number): string | null {
  return Number.isFinite(ms) && Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : null;
}

/** What of a filter the list cannot be asked. */
export function findProblems(filter: Filter, table: Qualifiers): readonly FilterProblem[] {
  return filter.flatMap((term, i): readonly FilterProblem[] => {
    const found = problemOf(term, table) ?? repetitionOf(term, filter.slice(0, i), table);
    return found === null ? [] : [found];
  });
}

function problemOf(term: Term, table: Qualifiers): FilterProblem | null {
  const problem = (code: FilterProblem['code'], allowed: readonly string[] = []) => ({ code, term, allowed });
  if (term.qualifier === null) {
    if (table.text === null) return problem('no_text');
    const canExclude = table.text.excludedParameter !== undefined;
    return term.isExcluded && !canExclude ? problem('not_excludable') : null;
  }
  const qualifier = table.qualifiers.find(({ name }) => name === term.qualifier);
  if (qualifier === undefined)
    return problem(
      'unknown_qualifier',
      table.qualifiers.map(({ name }) => name),
    );
  const { kind, choices = [], excludedParameter } = qualifier;
  if (term.value === '') return problem('missing_value', choices);
  const values = kind === 'choice' ? term.value.split(',') : [term.value];
  if (qualifier.choices !== undefined && !values.every((value) => choices.includes(value)))
    return problem('unknown_choice', choices);
  if (kind === 'time' && readTime(term.value, 0) === null)
    return problem('wrong_time', ['15m', '2h', '7d', '2026-01-31', '2026-01-31T14:00Z']);
  if (term.isExcluded && kind !== 'flag' && excludedParameter === undefined) return problem('not_excludable');
  return null;
}

/** Parameters with one value may be given once; only choices and excluded values add up. */
function repetitionOf(term: Term, before: Filter, table: Qualifiers): FilterProblem | null {
  if (term.qualifier === null && !term.isExcluded) return null;
  const alike = before.filter(
    ({ qualifier, isExcluded }) => qualifier === term.qualifier && isExcluded === term.isExcluded,
  );
  const kind = table.qualifiers.find(({ name }) => name === term.qualifier)?.kind;
  if (kind === 'flag') {
    const isGiven = before.some(
      ({ qualifier, value }) => qualifier === term.qualifier && value === term.value,
    );
    return isGiven ? { code: 'given_twice', term, allowed: [] } : null;
  }
  if (term.isExcluded)
    return alike.length >= maxExcluded ? { code: 'too_many', term, allowed: [String(maxExcluded)] } : null;
  return alike.length > 0 && kind !== 'choice' ? { code: 'given_twice', term, allowed: [] } : null;
}
