/** An event that many callers can wait for. */
export type WakeUp = Readonly<{
  wake(): void;
  wait(ms: number, signal?: AbortSignal): Promise<'woken' | 'timeout' | 'aborted'>;
}>;

export function createWakeUp(): WakeUp {
  const waiting = new Set<() => void>();
  return {
    wake: () => {
      for (const call of waiting) call();
    },
    wait: (ms, signal) =>
      new Promise((resolve) => {
        const leave = (how: 'woken' | 'timeout' | 'aborted'): void => {
          clearTimeout(timer);
          waiting.delete(onWake);
          signal?.removeEventListener('abort', onAbort);
          resolve(how);
        };
        const onWake = (): void => leave('woken');
        const onAbort = (): void => leave('aborted');
        const timer = setTimeout(() => leave('timeout'), ms);
        waiting.add(onWake);
        if (signal?.aborted) onAbort();
        else signal?.addEventListener('abort', onAbort, { once: true });
      }),
  };
}
