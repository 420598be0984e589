/**
 * What was done, as words. Others than the server write acts by SQL, under names of their own: those stand for
 * themselves.
 */
export function verbOf(
  texts: Readonly<Record<string, string>>,
  { action, change }: Readonly<{ action: string; change: string | null }>,
): string {
  const text = (key: string): string | undefined => (Object.hasOwn(texts, key) ? texts[key] : undefined);
  return (change === null ? undefined : text(`${action} ${change}`)) ?? text(action) ?? action;
}
