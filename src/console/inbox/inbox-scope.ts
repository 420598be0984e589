import { mayEverywhere, namesAllowed, type Principal } from '../../kernel/access/principal.ts';
import { passes, type NameFilter, type Resource } from '../../kernel/access/scope.ts';
import type { InboxKind } from '../../kernel/inbox/inbox-group.ts';
import type { InboxPart, InboxRight } from '../../platform/work/inbox-part.ts';
import type { Permission } from '../../kernel/access/permissions.ts';

/** Which entries of a part the principal may see, by kind: it needs the permission of the kind and `console`. */
export function kindsFor(
  { kinds }: InboxPart,
  principal: Pick<Principal, 'grants'>,
  console: Permission = 'console:inbox:view',
): ReadonlyMap<InboxKind, NameFilter> {
  const all = Object.entries(kinds) as [InboxKind, InboxRight][];
  return new Map(
    all
      .map(([kind, right]) => [kind, filterOf(principal, right, console)] as const)
      .filter(([, filter]) => filter?.length !== 0),
  );
}

function filterOf(
  principal: Pick<Principal, 'grants'>,
  { permission, dimension }: InboxRight,
  console: Permission,
): NameFilter {
  if (dimension === null)
    return mayEverywhere(principal, permission) && mayEverywhere(principal, console) ? null : [];
  return both(namesAllowed(principal, permission, dimension), namesAllowed(principal, console, dimension));
}

/** What both filters let through. */
function both(one: NameFilter, other: NameFilter): NameFilter {
  if (one === null || other === null) return one ?? other;
  return one.flatMap((lists) => other.map((more) => [...lists, ...more]));
}

/** Whether the filter lets all names of an entry through. What has no name is for roles that are not narrowed. */
export function isVisible(filter: NameFilter, names: Resource): boolean {
  if (filter === null) return true;
  const all = Object.values(names).flat();
  return all.length > 0 && all.every((name) => passes(filter, name));
}
