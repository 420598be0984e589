import { parseFilter, printFilter, type Term } from '../../../lib/filter/filter.ts';
import type { Qualifiers } from '../../../lib/filter/qualifiers.ts';

const statuses = ['pending', 'running', 'completed', 'failed', 'dead_letter'];
const resolutions = ['unresolved', 'cancelled', 'discarded', 'any'];

/** What jobs can be searched by. The server takes one status at a time. */
export const jobQualifiers: Qualifiers = {
  qualifiers: [
    { name: 'status', kind: 'one', parameter: 'status', choices: statuses, facet: 'status' },
    { name: 'queue', kind: 'one', parameter: 'queue', facet: 'queue' },
    { name: 'error', kind: 'one', parameter: 'error' },
    { name: 'key', kind: 'one', parameter: 'dedupe_key' },
    { name: 'fingerprint', kind: 'one', parameter: 'fingerprint' },
    { name: 'resolution', kind: 'one', parameter: 'resolution', choices: resolutions },
    { name: 'since', kind: 'time', parameter: 'created_from' },
    { name: 'until', kind: 'time', parameter: 'created_to' },
  ],
  text: null,
};

/** What dead letters can be requeued by. */
export const requeueQualifiers: Qualifiers = {
  qualifiers: jobQualifiers.qualifiers.filter(({ name }) =>
    ['queue', 'error', 'fingerprint', 'since', 'until'].includes(name),
  ),
  text: null,
};

/** Without the terms that every dead letter matches, which a requeue selects anyway. */
export function requeueTerms(filter: string): string {
  const isImplied = ({ qualifier, value, isExcluded }: Term): boolean =>
    !isExcluded &&
    ((qualifier === 'status' && value === 'dead_letter') ||
      (qualifier === 'resolution' && value === 'unresolved'));
  return printFilter(parseFilter(filter).filter((term) => !isImplied(term)));
}
