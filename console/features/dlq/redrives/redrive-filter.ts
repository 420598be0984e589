import { parseFilter, printFilter, type Term } from '../../../lib/filter/filter.ts';
import { toQuery, type FilterProblem } from '../../../lib/filter/qualifiers.ts';
import type { Operations, Redrive } from '../../../lib/server-shapes.ts';
import { redriveQualifiers } from './redrive-qualifiers.ts';

type PlanFilter = Operations['planRedrive']['input']['filter'];

/** What the text of a filter box selects, or what is wrong with it. */
export type ReadFilter =
  | Readonly<{ isValid: true; filter: PlanFilter }>
  | Readonly<{ isValid: false; problems: readonly FilterProblem[] }>;

export function readRedriveFilter(text: string, nowMs: number): ReadFilter {
  const query = toQuery(parseFilter(text), redriveQualifiers, nowMs);
  if (!query.isValid) return query;
  const statuses = query.parameters.filter(([name]) => name === 'status').map(([, value]) => value);
  const others = query.parameters.filter(([name]) => name !== 'status');
  return {
    isValid: true,
    filter: {
      ...Object.fromEntries(others),
      ...(statuses.length === 0 ? {} : { status: statuses as NonNullable<PlanFilter['status']> }),
    },
  };
}

/** The filter of a redrive as the text of a filter box. Chosen ids are only counted. */
export function printRedriveFilter(filter: Redrive['filter']): string {
  const terms = redriveQualifiers.qualifiers.flatMap(({ name, parameter }): readonly Term[] => {
    const value = filter[String(parameter)];
    if (Array.isArray(value)) return [{ qualifier: name, value: value.join(','), isExcluded: false }];
    return typeof value === 'string' ? [{ qualifier: name, value, isExcluded: false }] : [];
  });
  const words = typeof filter['text'] === 'string' ? filter['text'].split(/\s+/).filter(Boolean) : [];
  return printFilter([...terms, ...words.map((value) => ({ qualifier: null, value, isExcluded: false }))]);
}

/** How many ids a filter names; 0 if it selects by other fields. */
export function countIds(filter: Redrive['filter']): number {
  return Array.isArray(filter['ids']) ? filter['ids'].length : 0;
}
