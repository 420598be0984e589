import { passes, type NameFilter } from '../../kernel/access/scope.ts';
import type { IsAllowedTarget } from '../domain/target-rule.ts';
import type { Broker } from '../../platform/broker/port.ts';
import type { BulkFilter, DueTargets, MatchBy, Untouched } from './bulk-queries.ts';
import type { Reroute } from './claim-messages.ts';
import type { ExclusionReason } from '../domain/message.ts';

/** Where the messages of a bulk call go, and which of them cannot be published now. */
export type BulkTargets = Readonly<{
  routesFor(by: MatchBy): Readonly<{ reroute: Reroute }> & Pick<BulkFilter, 'onlyUnroutable'>;
  /** For what the broker reports while the call runs. */
  exclude(topic: string, problem: 'missing' | 'denied'): ExclusionReason;
  /** Topics that nothing can be published to. */
  excluded(): readonly string[];
  /** Topics that only messages routed by an operator may go to. */
  notAllowed(): readonly string[];
  /** Why these messages were excluded; null if they were not. */
  reasonFor(kind: Untouched): ExclusionReason | null;
}>;

type BulkTargetsDeps = Readonly<{
  /** The topics to which the caller may publish. */
  names: NameFilter;
  /** Null without a broker: then nothing is published and targets do not matter. */
  unwritable: Broker['unwritable'] | null;
  routesOf: (deadLetterTopic: string) => Reroute;
  isDeadLetterTopic: (topic: string) => boolean;
  isAllowedTarget: IsAllowedTarget;
}>;

const noReroute: Reroute = { unroutable: null, misnamed: null };

/** Checks every target before the first message is claimed. Rejects if the broker is unavailable. */
export async function findBulkTargets(
  deps: BulkTargetsDeps,
  topic: string,
  due: DueTargets,
): Promise<BulkTargets> {
  const { unwritable, isDeadLetterTopic, isAllowedTarget } = deps;
  const isDlqTopic = isDeadLetterTopic(topic);
  const routes = deps.routesOf(topic);
  const own = [routes.unroutable, isDlqTopic ? routes.misnamed : topic].filter((name) => name !== null);
  const reasons = new Map<string, ExclusionReason>();
  for (const other of due.others) if (isDeadLetterTopic(other)) reasons.set(other, 'unroutable');

  for (const target of own) if (!passes(deps.names, target)) reasons.set(target, 'target_not_in_scope');

  const notAllowed = new Set(
    unwritable === null
      ? []
      : [...own, ...due.others].filter((name) => !reasons.has(name) && !isAllowedTarget(name)),
  );

  const exclude: BulkTargets['exclude'] = (target, problem) => {
    const reason = problem === 'missing' ? 'target_missing' : 'target_not_writable';
    reasons.set(target, reason);
    return reason;
  };
  const toCheck = [...(due.hasOwn ? own : []), ...due.others].filter((name) => !reasons.has(name));
  if (unwritable !== null && toCheck.length > 0)
    for (const [target, { problem }] of await unwritable([...new Set(toCheck)])) exclude(target, problem);

  const openOrNull = (target: string | null): string | null =>
    target === null || reasons.has(target) || notAllowed.has(target) ? null : target;
  const routeOf = ({ by, target, unroutable }: Untouched): string | null => {
    if (by === 'source') return unroutable || isDeadLetterTopic(target) ? null : target;
    if (unroutable) return routes.unroutable;
    return isDlqTopic ? routes.misnamed : target;
  };

  return {
    routesFor(by) {
      if (by === 'source') return { reroute: noReroute, onlyUnroutable: false };
      const misnamed = isDlqTopic ? openOrNull(routes.misnamed) : null;
      return {
        reroute: { unroutable: openOrNull(routes.unroutable), misnamed },
        onlyUnroutable: isDlqTopic && misnamed === null,
      };
    },
    exclude,
    excluded: () => [...reasons.keys()],
    notAllowed: () => [...notAllowed],
    reasonFor(kind) {
      if (kind.isInRedrive) return 'in_another_redrive';
      if (kind.isIncomplete) return 'removed_at_ingest';
      const route = routeOf(kind);
      if (route === null) return 'unroutable';
      if (notAllowed.has(route) && !kind.isRouted) return 'target_not_allowed';
      return reasons.get(route) ?? (unwritable !== null && !kind.hasValue ? 'no_value' : null);
    },
  };
}
