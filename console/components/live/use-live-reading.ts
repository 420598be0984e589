import { useEffect, useRef } from 'react';
import {
  addUnread,
  allUnread,
  nothingUnread,
  type Change,
  type FollowedRedrive,
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
  isOwn?: (change: Change) => boolean;
  /** Whether the redrives are, which come once a second while one goes on; by default they are not. */
  areOwn?: (redrives: readonly FollowedRedrive[]) => boolean;
  /** Reads even while updates are held: what it reads is kept apart from what somebody is working on. */
  ignoresHold?: boolean;
  /** At most once in so many milliseconds, for what costs more than a list. */
  everyMs?: number;
}>;

const defaultEveryMs = 1000;
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
  const isLive = reading.slices.length > 0 || reading.areOwn !== undefined;
  useEffect(() => (isLive ? keepReading(store, () => latest.current) : undefined), [store, isLive]);
}

function keepReading(store: LiveStore, latest: () => LiveReading): () => void {
  let unread: Unread = nothingUnread;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let notBeforeMs = 0;
  let isReading = false;
  let isOver = false;

  const isDue = (): boolean => unread.many || unread.ids.size > 0;
  const isWaiting = (): boolean => store.isWaiting(latest().ignoresHold === true);
  const schedule = (): void => {
    if (isOver || isReading || timer !== undefined || !isDue() || isWaiting()) return;
    timer = setTimeout(() => void readNow(), Math.max(0, notBeforeMs - performance.now()));
  };
  const readNow = async (): Promise<void> => {
    timer = undefined;
    if (isOver || isWaiting()) return;
    const now = unread;
    unread = nothingUnread;
    isReading = true;
    const startedMs = performance.now();
    // What failed is shown by whoever reads; the next event or the next round reads again.
    await latest()
      .read(now)
      .catch(() => {});
    const { everyMs = defaultEveryMs } = latest();
    notBeforeMs = performance.now() + Math.max(everyMs, (performance.now() - startedMs) * shareOfTime);
    isReading = false;
    schedule();
  };
  const take = (event: LiveEvent): void => {
    unread = addEvent(unread, event, latest());
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

function addEvent(unread: Unread, event: LiveEvent, reading: LiveReading): Unread {
  const { slices, isOwn = () => true, areOwn = () => false } = reading;
  switch (event.kind) {
    case 'resync':
      return allUnread;
    case 'change':
      return slices.includes(event.change.slice) && isOwn(event.change)
        ? addUnread(unread, event.change)
        : unread;
    case 'redrives':
      return areOwn(event.redrives) ? allUnread : unread;
    case 'beat':
    case 'bye':
      return unread;
  }
}
