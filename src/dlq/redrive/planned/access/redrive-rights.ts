import type { Permission } from '../../../../kernel/access/permissions.ts';
import { mayAnywhere, namesAllowed, type Principal } from '../../../../kernel/access/principal.ts';
import type { Rights } from '../../../../kernel/access/rights.ts';
import { passes, type NameFilter } from '../../../../kernel/access/scope.ts';
import type { RedriveKind } from '../../../domain/redrive-kind.ts';
import type { LeasedRedrive, RedriveOptions } from '../redrives-table.ts';

/**
 * A redrive acts for somebody long after their request. So it is checked three times that they may do it: the plan
 * selects only what is in the scope of the planner, sources and targets; the start needs the rights for all topics of
 * the plan; and while it runs, the process that runs it asks again, because rights can be lost meanwhile.
 */
type About = Readonly<{ kind: RedriveKind; options: Pick<RedriveOptions, 'reopen'> }>;

/** Whoever may not decide about one message may not decide about many. */
export function neededFor(kind: RedriveKind, { reopen = false }: About['options']): Permission | null {
  switch (kind) {
    case 'retry':
      return reopen ? 'dlq:messages:reopen' : null;
    case 'reopen':
      return 'dlq:messages:reopen';
    case 'dead':
      return 'dlq:messages:mark-dead';
    case 'delete':
      return 'dlq:messages:delete';
  }
}

type RedrivePermission = 'dlq:redrives:plan' | 'dlq:redrives:start';

function allNeeded(permission: RedrivePermission, { kind, options }: About): readonly Permission[] {
  const also = neededFor(kind, options);
  return also === null ? [permission] : [permission, also];
}

/** The topics for which the principal has the permissions; each of the filters must let a topic through. */
export function topicsFor(
  principal: Principal,
  permission: RedrivePermission,
  redrive: About,
): readonly NameFilter[] {
  return allNeeded(permission, redrive).map((one) => namesAllowed(principal, one, 'topics'));
}

/** What the planner may select now; a text says why nothing. Policies are part of the configuration. */
export async function scopesOfPlanner(
  rights: Pick<Rights, 'principalOf'>,
  redrive: Pick<LeasedRedrive, 'actor' | 'filter'> & About,
): Promise<readonly NameFilter[] | string> {
  const { actor, filter } = redrive;
  if (filter.policy !== undefined) return [];
  const principal = await rights.principalOf(actor);
  const missing = missingOf(principal, 'dlq:redrives:plan', redrive);
  if (principal === null || missing !== null) return lost(actor, missing);
  return topicsFor(principal, 'dlq:redrives:plan', redrive);
}

/** Why the redrive must not continue; null if whoever started it still has the right, for all its topics. */
export async function findLostRight(
  rights: Pick<Rights, 'principalOf'>,
  redrive: Pick<LeasedRedrive, 'actor' | 'startedBy' | 'topics' | 'filter'> & About,
): Promise<string | null> {
  const { actor, startedBy, topics = null, filter } = redrive;
  if (filter.policy !== undefined) return null;
  const subject = startedBy ?? actor;
  return lostRightOf(subject, await rights.principalOf(subject), { ...redrive, topics });
}

/** The same for a principal that is known. */
export function lostRightOf(
  subject: string,
  principal: Principal | null,
  redrive: About & Readonly<{ topics: readonly string[] | null }>,
): string | null {
  const missing = missingOf(principal, 'dlq:redrives:start', redrive);
  if (principal === null || missing !== null) return lost(subject, missing);
  for (const permission of allNeeded('dlq:redrives:start', redrive)) {
    const names = namesAllowed(principal, permission, 'topics');
    const outside =
      names === null ? undefined : (redrive.topics ?? ['unknown']).find((topic) => !passes(names, topic));
    if (outside !== undefined) return lost(subject, `${permission} for the topic ${outside}`);
  }
  return null;
}

function missingOf(
  principal: Principal | null,
  permission: RedrivePermission,
  redrive: About,
): string | null {
  if (principal === null) return null;
  return allNeeded(permission, redrive).find((one) => !mayAnywhere(principal, one)) ?? null;
}

function lost(subject: string, missing: string | null): string {
  return missing === null ? `${subject} has no rights` : `${subject} does not have the permission ${missing}`;
}
