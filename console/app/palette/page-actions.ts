/** A button or link of the page, as something to do. */
export type PageAction = Readonly<{
  label: string;
  /** Such as `r`; null if it has none. */
  keys: string | null;
  /** Why it cannot be used. */
  disabledReason: string | null;
  element: HTMLElement;
}>;

/**
 * What can be done on the page as it is: its buttons, those for the selection, and those of the row that has the focus.
 * They are read from the page, so that a page needs nothing to take part, and nothing can be done here that it does not
 * offer.
 */
export function findPageActions(page: ParentNode, focused: Element | null): readonly PageAction[] {
  const row = focused?.closest('[data-row-id]') ?? null;
  const seen = new Set<string>();
  return [...page.querySelectorAll<HTMLElement>('[data-action]')].flatMap((element) => {
    const own = element.closest('[data-row-id]');
    const label = labelOf(element);
    if ((own !== null && own !== row) || element.closest('[inert]') !== null || label === '') return [];
    if (seen.has(label)) return [];
    seen.add(label);
    return [
      {
        label,
        keys: element.getAttribute('aria-keyshortcuts'),
        disabledReason: element.getAttribute('aria-disabled') === 'true' ? reasonOf(element) : null,
        element,
      },
    ];
  });
}

/** Without the key that is printed on it. */
function labelOf(element: HTMLElement): string {
  const named = element.getAttribute('aria-label');
  if (named !== null) return named;
  const copy = element.cloneNode(true) as HTMLElement;
  for (const key of copy.querySelectorAll('kbd, [aria-hidden]')) key.remove();
  return copy.textContent.trim().replaceAll(/\s+/g, ' ');
}

function reasonOf(element: HTMLElement): string {
  const ids = element.getAttribute('aria-describedby')?.split(' ') ?? [];
  return ids.map((id) => element.ownerDocument.getElementById(id)?.textContent ?? '').join(' ');
}
