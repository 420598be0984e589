import type { Act } from '../../kernel/audit/act.ts';
import { cleanText } from '../../kernel/text.ts';

/** Something that was refused: by whom it was tried, with the reason in `act.reason`. */
export type Denial = Readonly<{
  act: Act;
  /** What it was about: `http/POST /api/v1/keys`. */
  resource: string;
  /** Who counts as one caller: the id of a principal, or the network of somebody unknown. */
  caller: string;
}>;

export type CountedDenial = Denial & Readonly<{ count: number }>;

export type DenialTally = Readonly<{
  note(denial: Denial): void;
  /** What was noted since the last call. */
  take(): readonly CountedDenial[];
  /** Adds what could not be stored to what was noted since. */
  putBack(denials: readonly CountedDenial[]): void;
}>;

/** Denials beyond the largest number of rows are counted together, in a row of their own. */
const otherDenials: Denial = {
  act: {
    actor: { type: 'local', id: 'nobody', name: 'nobody', roles: [] },
    action: 'http:requests:deny',
    reason: 'more callers and routes than are recorded one by one',
    request: { id: null, traceId: null, address: null, agent: null },
  },
  resource: 'http/other',
  caller: '',
};

/**
 * Counts denials by caller, action, resource and reason, so that a million refused requests of one caller cause one row.
 * The row has the request of the first one. Everything that the caller chooses is cut, so memory is bounded too.
 */
export function createDenialTally(maxRows: number): DenialTally {
  let counted = new Map<string, { denial: Denial; count: number }>();

  const add = (given: Denial, count: number): void => {
    const denial = cut(given);
    const key = keyOf(denial);
    const found = counted.get(key);
    if (found !== undefined) found.count += count;
    else if (counted.size < maxRows) counted.set(key, { denial, count });
    else {
      const other = keyOf(otherDenials);
      counted.set(other, { denial: otherDenials, count: (counted.get(other)?.count ?? 0) + count });
    }
  };

  return {
    note: (denial) => add(denial, 1),
    take() {
      const taken = counted;
      counted = new Map();
      return [...taken.values()].map(({ denial, count }) => ({ ...denial, count }));
    },
    putBack(denials) {
      for (const { count, ...denial } of denials) add(denial, count);
    },
  };
}

function keyOf({ act, resource, caller }: Denial): string {
  return JSON.stringify([caller, act.action, resource, act.reason]);
}

function cut({ act, resource, caller }: Denial): Denial {
  const { actor, request } = act;
  return {
    act: {
      ...act,
      actor: { ...actor, id: cleanText(actor.id, 500), name: cleanText(actor.name, 255) },
      request: { ...request, agent: request.agent === null ? null : cleanText(request.agent, 300) },
    },
    resource: cleanText(resource, 500),
    caller: cleanText(caller, 500),
  };
}
