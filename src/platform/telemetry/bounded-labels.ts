/** Label values for external names. Bounded, so that clients cannot create unlimited time series. */
export type BoundedLabels = Readonly<{
  /** The name itself, or `other` once there are too many names. Sums over all labels stay correct. */
  labelOf(name: string): string;
}>;

export const otherLabel = 'other';

const maxLabels = 200;

/** The first names get their own labels; configured names (`known`) always do. */
export function createBoundedLabels({
  known = [],
  limit = maxLabels,
}: Readonly<{ known?: readonly string[]; limit?: number | undefined }> = {}): BoundedLabels {
  const kept = new Set(known);
  return {
    labelOf(name) {
      if (!kept.has(name) && kept.size < limit) kept.add(name);
      return kept.has(name) ? name : otherLabel;
    },
  };
}
