import { createContext } from 'react';

/** Tells the time, and once a second those who show it. */
export type Clock = Readonly<{ now(): number; subscribe(listener: () => void): () => void }>;

function createClock(): Clock {
  const listeners = new Set<() => void>();
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    now: () => Date.now(),
    subscribe(listener) {
      listeners.add(listener);
      timer ??= setInterval(() => listeners.forEach((tell) => tell()), 1000);
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}

export const ClockContext = createContext<Clock>(createClock());
