import { placeTerms, printTerm, type Filter } from './filter.ts';
import type { Qualifiers } from './qualifiers.ts';

/** A completion of the term at the caret. */
export type Completion = Readonly<{
  /** The whole text of the filter after it was chosen. */
  text: string;
  /** Where the caret goes. */
  caret: number;
  label: string;
  /** How often the value occurs, if known. */
  count: number | null;
  isQualifier: boolean;
}>;

/** Values that occur, by facet. A count is null where only some rows were looked at. */
export type ValueCounts = Readonly<
  Record<string, readonly Readonly<{ value: string; count: number | null }>[]>
>;

const maxCompletions = 20;

/** What the term at the caret could become: qualifiers, then values that occur, the most frequent first. */
export function completeFilter(
  text: string,
  caret: number,
  table: Qualifiers,
  counts: ValueCounts,
): readonly Completion[] {
  const placed = placeTerms(text).find(({ start, end }) => start < caret && caret <= end);
  const { start, end } = placed ?? { start: caret, end: caret };
  const typed = placed?.term ?? { qualifier: null, value: '', isExcluded: false };
  const put = (inserted: string, isQualifier: boolean): Pick<Completion, 'text' | 'caret'> => {
    const after = text.slice(end);
    const gap = isQualifier || after.startsWith(' ') ? '' : ' ';
    return {
      text: text.slice(0, start) + inserted + gap + after,
      caret: start + inserted.length + gap.length,
    };
  };
  const sign = typed.isExcluded ? '-' : '';
  if (typed.qualifier === null) {
    return table.qualifiers
      .filter(({ name, kind, excludedParameter }) => {
        const canBe = !typed.isExcluded || kind === 'flag' || excludedParameter !== undefined;
        return canBe && name.startsWith(typed.value.toLowerCase());
      })
      .map(({ name }) => ({
        ...put(`${sign}${name}:`, true),
        label: `${sign}${name}:`,
        count: null,
        isQualifier: true,
      }));
  }
  const qualifier = table.qualifiers.find(({ name }) => name === typed.qualifier);
  if (qualifier === undefined) return [];
  const occurring = counts[qualifier.facet ?? ''] ?? [];
  const known = new Set(occurring.map(({ value }) => value));
  const values = [
    ...occurring,
    ...(qualifier.choices ?? [])
      .filter((value) => !known.has(value))
      .map((value) => ({ value, count: null })),
    ...(qualifier.kind === 'time' ? ['15m', '1h', '6h', '24h', '7d'] : []).map((value) => ({
      value,
      count: null,
    })),
  ];
  return values
    .filter(({ value }) => value.toLowerCase().includes(typed.value.toLowerCase()))
    .slice(0, maxCompletions)
    .map(({ value, count }) => {
      const printed = printTerm({ ...typed, value });
      return { ...put(printed, false), label: printed, count, isQualifier: false };
    });
}

/** The filter with the value of a qualifier set, or with none of it. */
export function withTerm(filter: Filter, qualifier: string, value: string | null): Filter {
  const isMeant = (term: Filter[number]): boolean => term.qualifier === qualifier && !term.isExcluded;
  const at = filter.findIndex(isMeant);
  const rest = filter.filter((term) => !isMeant(term));
  if (value === null || value === '') return rest;
  const place = at < 0 ? rest.length : filter.slice(0, at).filter((term) => !isMeant(term)).length;
  return rest.toSpliced(place, 0, { qualifier, value, isExcluded: false });
}
