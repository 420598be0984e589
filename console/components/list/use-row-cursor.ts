import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  type FocusEvent,
  type RefObject,
} from 'react';

export type RowCursor = Readonly<{
  /** The row in which focus is; null if it is elsewhere. */
  current: () => string | null;
  moveTo: (id: string) => void;
  remember: (event: FocusEvent) => void;
}>;

type Options = Readonly<{ initialCursor?: string; onCursor?: (id: string) => void }>;

/** The row with focus, by its id. If it is taken away, focus goes to the row in its place. */
export function useRowCursor(
  box: RefObject<HTMLElement | null>,
  ids: readonly string[],
  options: Options,
): RowCursor {
  const { initialCursor, onCursor } = options;
  const last = useRef<Readonly<{ id: string; index: number }> | null>(null);
  const hasBegun = useRef(false);
  const moveTo = useCallback(
    (id: string) => {
      const row = box.current?.querySelector(`[data-row-id="${CSS.escape(id)}"]`);
      const link = row?.querySelector<HTMLElement>('[data-row-link]');
      link?.focus({ preventScroll: true });
      row?.scrollIntoView({ block: 'nearest' });
    },
    [box],
  );
  const remember = useCallback(
    (event: FocusEvent) => {
      const id = rowOf(event.target);
      if (id === null) return;
      if (last.current?.id !== id) onCursor?.(id);
      last.current = { id, index: ids.indexOf(id) };
    },
    [ids, onCursor],
  );
  useLayoutEffect(() => {
    const before = last.current;
    if (before === null) return;
    const index = ids.indexOf(before.id);
    if (index >= 0) {
      last.current = { id: before.id, index };
      return;
    }
    const next = ids[Math.min(before.index, ids.length - 1)];
    last.current = null;
    if (next !== undefined && isFree(box.current)) moveTo(next);
  }, [ids.join(), moveTo]);
  useEffect(() => {
    const [first] = ids;
    if (hasBegun.current || first === undefined || initialCursor === undefined) return;
    hasBegun.current = true;
    if (isFree(box.current)) moveTo(ids.includes(initialCursor) ? initialCursor : first);
  }, [ids.join(), initialCursor, moveTo]);
  return useMemo(
    () => ({ current: () => rowOf(document.activeElement), moveTo, remember }),
    [moveTo, remember],
  );
}

function rowOf(target: Element | null): string | null {
  return target?.closest<HTMLElement>('[data-row-id]')?.dataset['rowId'] ?? null;
}

/** Whether nobody uses the keyboard elsewhere: focus is nowhere, or on what contains the list. */
function isFree(box: HTMLElement | null): boolean {
  const { activeElement } = document;
  return activeElement === null || (box !== null && activeElement.contains(box));
}
