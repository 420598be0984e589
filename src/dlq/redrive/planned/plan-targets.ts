import type { Broker } from '../../../platform/broker/port.ts';
import type { Decision, RedriveKind } from '../../domain/redrive-kind.ts';
import type { IsAllowedTarget } from '../../domain/target-rule.ts';
import type { Reroute } from '../claim-messages.ts';
import type { Origin, PlanRow } from './plan-scope.ts';

/** Why a message is left out of a plan. */
export const exclusionReasons = [
  'attempts_used_up',
  'wrong_status',
  'dead',
  'being_retried',
  'in_another_redrive',
  'unroutable',
  'no_value',
  'removed_at_ingest',
  'target_missing',
  'target_not_writable',
  'target_not_allowed',
  'target_not_in_scope',
  'archived',
  'not_found',
] as const;
export type PlanExclusion = (typeof exclusionReasons)[number];

export type TargetDeps = Readonly<{
  /** Null without a broker: then nothing is published, and targets do not matter. */
  unwritable: Broker['unwritable'] | null;
  routesOf: (deadLetterTopic: string) => Reroute;
  isDeadLetterTopic: (topic: string) => boolean;
  isAllowedTarget: IsAllowedTarget;
}>;

export type PlanTargets = Readonly<{
  /** Null if the plan saw no such message when it began: it arrived later. */
  place(row: PlanRow): Readonly<{ target: string }> | Readonly<{ excluded: PlanExclusion }> | null;
}>;

/** A bulk decision publishes nothing: where the messages go does not matter. */
export function decisionTargets(kind: Decision): PlanTargets {
  return {
    place(row) {
      const state = excludedByState(kind, row);
      return state === null ? { target: row.originalTopic } : { excluded: state };
    },
  };
}

/** Asks the broker about every target before the selection is read. */
export async function findPlanTargets(
  deps: TargetDeps,
  origins: readonly Origin[],
  signal: AbortSignal,
): Promise<PlanTargets> {
  const targets = new Map(origins.map((origin) => [keyOf(origin), targetOf(deps, origin)]));
  const named = new Set([...targets.values()].filter((target) => target !== null));
  const troubles =
    deps.unwritable === null || named.size === 0
      ? new Map<string, never>()
      : await deps.unwritable([...named], signal);

  return {
    place(row) {
      const state = excludedByState('retry', row);
      if (state !== null) return { excluded: state };
      if (row.isIncomplete) return { excluded: 'removed_at_ingest' };
      const target = targets.get(keyOf(row));
      if (target === undefined) return null;
      if (target === null) return { excluded: 'unroutable' };
      if (deps.unwritable === null) return { target };
      if (!row.isRouted && !deps.isAllowedTarget(target)) return { excluded: 'target_not_allowed' };
      const problem = troubles.get(target)?.problem;
      if (problem !== undefined)
        return { excluded: problem === 'missing' ? 'target_missing' : 'target_not_writable' };
      return row.hasValue ? { target } : { excluded: 'no_value' };
    },
  };
}

function excludedByState(kind: RedriveKind, row: PlanRow): PlanExclusion | null {
  if (row.status === 'RETRYING') return 'being_retried';
  if (!row.isSelectable) return unselectable(kind, row);
  return row.elsewhere === null ? null : 'in_another_redrive';
}

function unselectable(kind: RedriveKind, { status, hasAttempt }: PlanRow): PlanExclusion {
  if (kind !== 'retry' || status === 'RESOLVED') return 'wrong_status';
  return status === 'DEAD' && hasAttempt ? 'dead' : 'attempts_used_up';
}

function targetOf(deps: TargetDeps, { originalTopic, sourceTopic, isUnroutable }: Origin): string | null {
  const routes = deps.routesOf(sourceTopic ?? originalTopic);
  if (isUnroutable) return routes.unroutable;
  return deps.isDeadLetterTopic(originalTopic) ? routes.misnamed : originalTopic;
}

function keyOf({ originalTopic, sourceTopic, isUnroutable }: Origin): string {
  return `${originalTopic}\n${sourceTopic ?? ''}\n${isUnroutable}`;
}
