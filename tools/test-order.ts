/**
 * The longest files of `npm test`, which start first: a long one that starts last runs alone. `npm test` prints the
 * slowest files when it ends.
 */
export const longFiles: readonly string[] = [
];

/** Long files first, the others by name. */
export function longestFirst(files: readonly string[]): readonly string[] {
  const rank = new Map(longFiles.map((file, index) => [file, index]));
  const rankOf = (file: string): number => rank.get(file) ?? longFiles.length;
  return files.toSorted((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
}
