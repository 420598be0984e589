/** As a pattern of SQL's LIKE: `*` is any number of characters, `?` is one; all others stand for themselves. */
export function likePattern(glob: string): string {
  return glob
    .replaceAll(/[\\%_]/g, String.raw`\$&`)
    .replaceAll('*', '%')
    .replaceAll('?', '_');
}
