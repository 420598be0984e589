import { parseFilter } from '../../../lib/filter/filter.ts';
import { readTime } from '../../../lib/filter/qualifiers.ts';
import type { Selection } from '../../../lib/selection/selection.ts';

/** The body of `POST /api/v1/sagas/retry`, without its reason. */
export type RetryCriteria = Readonly<Record<string, string | readonly string[]>>;

/** The API names this many at most. */
export const maxNamed = 1000;

/**
 * What a bulk retry of a selection asks for; null if the API cannot be asked that. Only stuck sagas are retried, so
 * `is:stuck` says nothing more. Those that got stuck after the selection was made are left out.
 */
export function retryCriteriaOf(selection: Selection): RetryCriteria | null {
  if (selection.kind === 'none') return null;
  if (selection.kind === 'some')
    return selection.ids.size > maxNamed ? null : { saga_ids: [...selection.ids] };
  if (selection.minus.size > 0) return null;
  const atMs = Date.parse(selection.frozenAt);
  const criteria: Record<string, string> = { stuck_to: selection.frozenAt };
  for (const { qualifier, value, isExcluded } of parseFilter(selection.filter)) {
    if (isExcluded) return null;
    if (qualifier === 'workflow') criteria['workflow_name'] = value;
    else if (qualifier === 'step') criteria['step'] = value;
    else if (qualifier === 'since') criteria['created_from'] = readTime(value, atMs) ?? '';
    else if (qualifier === 'until') criteria['created_to'] = readTime(value, atMs) ?? '';
    else if (qualifier !== 'is' || value !== 'stuck') return null;
  }
  return criteria;
}
