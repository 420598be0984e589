import { useEffect, useRef } from 'react';
import {
  addUnread,
  allUnread,
  nothingUnread,
  type LiveEvent,
  type Slice,
  type Unread,
} from '../../lib/live/live-events.ts';
import { useLiveStore } from './live-context.ts';
import type { LiveStore } from './live-store.ts';

export type LiveReading = Readonly<{
  /** Whose events matter; none: nothing is read again. */
  slices: readonly Slice[];
  /** Reads again what may have changed. */
  read: (unread: Unread) => Promise<unknown>;
  /** Whether a change is of interest; by default every one is. */
  isOwn?: (event: LiveEvent) => boolean;
}>;

const everyMs = 1000;
/** What takes long is read less often, so that a list of a busy server is at most a tenth of its work. */
const shareOfTime = 10;
/** For what events do not tell: a change of a row that nobody looks at, in a scope that is narrowed. */
const anywayMs = 30_000;

/**
 * Reads again after events, at most once a second, and not while updates wait. What was missed meanwhile is read when
 * they go on.
 */
export function useLiveReading(reading: LiveReading): void {
  const store = useLiveStore();
  const latest = useRef(reading);
  useEffect(() => {
    latest.current = reading;
  });
  const names = reading.slices.join();
  useEffect(() => (names === '' ? undefined : keepReading(store, () => latest.current)), [store, names]);
}

function keepReading(store: LiveStore, latest: () => LiveReading): () => void {
  let unread: Unread = nothingUnread;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let notBeforeMs = 0;
  let isReading = false;
  let isOver = false;

  const isDue = (): boolean => unread.many || unread.ids.size > 0;
  const schedule = (): void => {
    if (isOver || isReading || timer !== undefined || !isDue() || store.isWaiting()) return;
    timer = setTimeout(() => void readNow(), Math.max(0, notBeforeMs - performance.now()));
  };
  const readNow = async (): Promise<void> => {
    timer = undefined;
    if (isOver || store.isWaiting()) return;
    const now = unread;
    unread = nothingUnread;
    isReading = true;
    const startedMs = performance.now();
    // What failed is shown by whoever reads; the next event or the next round reads again.
    await latest()
      .read(now)
      .catch(() => {});
    notBeforeMs = performance.now() + Math.max(everyMs, (performance.now() - startedMs) * shareOfTime);
    isReading = false;
    schedule();
  };
  const take = (event: LiveEvent): void => {
    const { slices, isOwn = () => true } = latest();
    if (event.kind === 'resync') unread = allUnread;
    else if (event.kind === 'change' && slices.includes(event.change.slice) && isOwn(event))
      unread = addUnread(unread, event.change);
    else if (event.kind === 'redrives' && latest().isOwn?.(event) === true) unread = allUnread;
    schedule();
  };
  const anyway = setInterval(() => {
    unread = allUnread;
    schedule();
  }, anywayMs);
  const stops = [store.onEvent(take), store.subscribe(schedule)];
  document.addEventListener('visibilitychange', schedule);
  return () => {
    isOver = true;
    clearTimeout(timer);
    clearInterval(anyway);
    document.removeEventListener('visibilitychange', schedule);
    for (const stop of stops) stop();
  };
}
