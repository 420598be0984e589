import type { PlanExclusion } from './plan-targets.ts';

/** What a plan found: how many messages it selected and left out, and where the selected ones go. */
export type PlanCounts = Readonly<{
  selected: number;
  excluded: readonly Readonly<{ reason: PlanExclusion; count: number; sample_ids: readonly string[] }>[];
  /** The largest ones. */
  targets: readonly Readonly<{ topic: string; count: number; groups: readonly string[] }>[];
}>;

const maxSamples = 100;
const maxTargets = 100;
const maxGroups = 100;

export function createPlanTally() {
  const excluded = new Map<PlanExclusion, { count: number; sample: string[] }>();
  const targets = new Map<string, { count: number; groups: Set<string> }>();
  let selected = 0;
  return {
    select(topic: string, consumerGroup: string | null): void {
      selected += 1;
      const target = targets.get(topic) ?? { count: 0, groups: new Set() };
      target.count += 1;
      if (consumerGroup !== null && target.groups.size < maxGroups) target.groups.add(consumerGroup);
      targets.set(topic, target);
    },
    exclude(reason: PlanExclusion, id: string): void {
      const found = excluded.get(reason) ?? { count: 0, sample: [] };
      found.count += 1;
      if (found.sample.length < maxSamples) found.sample.push(id);
      excluded.set(reason, found);
    },
    result: (): PlanCounts => ({
      selected,
      excluded: [...excluded].map(([reason, { count, sample }]) => ({ reason, count, sample_ids: sample })),
      targets: [...targets]
        .map(([topic, { count, groups }]) => ({ topic, count, groups: [...groups].toSorted() }))
        .toSorted((a, b) => b.count - a.count)
        .slice(0, maxTargets),
    }),
  };
}
