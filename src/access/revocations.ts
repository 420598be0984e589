import type { Revocations } from '../platform/http/access/end-when-refused.ts';

/** Tells the streams of this process that a session or a key has ended. */
export function createRevocations(): Readonly<{ subscribe: Revocations; announce: () => void }> {
  const listeners = new Set<() => void>();
  return {
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    announce: () => listeners.forEach((listener) => listener()),
  };
}
