/** What a tab keeps over a reload. Storage may be forbidden or full; then it lasts as long as the page. */
const inPage = new Map<string, string>();

export function keep(name: string, text: string): void {
  inPage.set(name, text);
  try {
    sessionStorage.setItem(name, text);
  } catch {
    // Not over a reload.
  }
}

export function readKept(name: string): string | null {
  const kept = inPage.get(name);
  if (kept !== undefined) return kept;
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}
