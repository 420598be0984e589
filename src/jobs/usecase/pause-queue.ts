import type { Pause, QueueStore } from './reading-ports.ts';

export type PauseDeps = Readonly<{
  queueStore: QueueStore;
  /** A queue needs no row and keeps no history of its pauses: who paused it or let it go on is in the log. */
  onPause: (done: Readonly<{ queue: string; by: string; reason: string | null; isPaused: boolean }>) => void;
}>;

type Asked = Readonly<{ queue: string; by: string; reason: string | null }>;

/** No job of it is claimed from now on; what runs runs on. Who pauses a paused queue is told who did so first. */
export async function pauseQueue({ queueStore, onPause }: PauseDeps, asked: Asked): Promise<Pause> {
  const pause = await queueStore.pause(asked.queue, asked.by, asked.reason);
  onPause({ ...asked, isPaused: true });
  return pause;
}

/** Its workers are woken. A queue that is not paused stays as it is. */
export async function resumeQueue({ queueStore, onPause }: PauseDeps, asked: Asked): Promise<void> {
  const wasPaused = await queueStore.resume(asked.queue);
  if (wasPaused) onPause({ ...asked, isPaused: false });
}
