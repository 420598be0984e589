import type { PlanExclusion } from './plan-targets.ts';

/** What a plan found: how many messages it selected and left out, where they go, and why they failed. */
export type PlanCounts = Readonly<{
  selected: number;
  excluded: readonly Readonly<{ reason: PlanExclusion; count: number; sample_ids: readonly string[] }>[];
  /** The largest ones. */
  targets: readonly PlannedTarget[];
  /** Why the groups that read the targets could not be found. */
  groups_error?: string | null;
  /** The redrives that have messages of the filter, and how many; the largest ones. */
  overlaps?: readonly Readonly<{ redrive_id: string; count: number }>[];
  /** The largest ones. Missing in plans of older versions, like what follows. */
  fingerprints?: readonly Readonly<{ fingerprint: string | null; count: number }>[];
  keys?: KeyCounts;
  /** Selected messages, of as many targets and fingerprints as possible. */
  sample_ids?: readonly string[];
}>;

/** `groups` read the topic; `failed_groups` failed on its messages. */
export type PlannedTarget = Readonly<{
  topic: string;
  count: number;
  groups: readonly string[];
  failed_groups: readonly string[];
}>;

/** Messages of one key are sent one after the other: a long key says how much of the order matters. */
export type KeyCounts = Readonly<{ distinct: number; longest: number; without_key: number }>;

/** A selected message. */
export type Selected = Readonly<{
  id: string;
  target: string;
  consumerGroup: string | null;
  fingerprint: string | null;
}>;

const maxListed = 100;
const maxGroups = 100;
const maxSample = 20;
/** Fingerprints beyond these are counted as one, so that a plan of a million causes stays small. */
const maxFingerprints = 10_000;

export function createPlanTally() {
  const excluded = new Map<PlanExclusion, { count: number; sample: string[] }>();
  const targets = new Map<string, { count: number; groups: Set<string> }>();
  const fingerprints = new Map<string | null, number>();
  const sample = new Map<string, string>();
  const overlaps = new Map<string, number>();
  let selected = 0;
  return {
    select({ id, target: topic, consumerGroup, fingerprint }: Selected): void {
      selected += 1;
      const target = targets.get(topic) ?? { count: 0, groups: new Set() };
      target.count += 1;
      if (consumerGroup !== null && target.groups.size < maxGroups) target.groups.add(consumerGroup);
      targets.set(topic, target);
      const isKnown = fingerprints.has(fingerprint) || fingerprints.size < maxFingerprints;
      const counted = isKnown ? fingerprint : null;
      fingerprints.set(counted, (fingerprints.get(counted) ?? 0) + 1);
      const kind = `${topic} ${fingerprint}`;
      if (sample.size < maxSample && !sample.has(kind)) sample.set(kind, id);
    },
    exclude(reason: PlanExclusion, id: string): void {
      const found = excluded.get(reason) ?? { count: 0, sample: [] };
      found.count += 1;
      if (found.sample.length < maxListed) found.sample.push(id);
      excluded.set(reason, found);
    },
    /** A message that another redrive has. */
    overlap(redriveId: string): void {
      overlaps.set(redriveId, (overlaps.get(redriveId) ?? 0) + 1);
    },
    result: (): PlanCounts => ({
      selected,
      excluded: [...excluded].map(([reason, { count, sample: ids }]) => ({ reason, count, sample_ids: ids })),
      targets: largest(
        [...targets].map(([topic, { count, groups }]) => {
          const failed = [...groups].toSorted();
          return { topic, count, groups: failed, failed_groups: failed };
        }),
      ),
      fingerprints: largest([...fingerprints].map(([fingerprint, count]) => ({ fingerprint, count }))),
      overlaps: largest([...overlaps].map(([redrive_id, count]) => ({ redrive_id, count }))),
      sample_ids: [...sample.values()],
    }),
  };
}

function largest<Row extends Readonly<{ count: number }>>(rows: readonly Row[]): readonly Row[] {
  return rows.toSorted((a, b) => b.count - a.count).slice(0, maxListed);
}
