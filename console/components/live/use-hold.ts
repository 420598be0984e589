import { useEffect, useState } from 'react';
import type { Hold } from '../../lib/live/indicator.ts';
import { useLiveStore } from './live-context.ts';

/** While `by` is not null, what is on screen stays as it is, and the indicator says why. */
export function useHold(by: Hold['by'] | null, count = 0): void {
  const store = useLiveStore();
  useEffect(() => {
    if (by === null) return;
    return store.hold(by === 'selection' ? { by, count } : { by });
  }, [store, by, count]);
}

/** Somebody who marks text wants to read or to copy it. */
export function useTextSelectionHold(): void {
  const [hasText, setHasText] = useState(false);
  useEffect(() => {
    const look = (): void => {
      const selection = document.getSelection();
      const content = document.getElementById('content');
      const isInContent = content !== null && selection !== null && content.contains(selection.anchorNode);
      setHasText(isInContent && !selection.isCollapsed && selection.toString().trim() !== '');
    };
    document.addEventListener('selectionchange', look);
    return () => document.removeEventListener('selectionchange', look);
  }, []);
  useHold(hasText ? 'text' : null);
}
