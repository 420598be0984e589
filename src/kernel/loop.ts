import { sleep } from './clock.ts';
import type { Service } from './service.ts';

/** A service that does one thing again and again. A round that fails is reported and the loop goes on. */
export function createLoop(options: {
  readonly name: string;
  readonly everyMs: number;
  readonly run: (stopping: AbortSignal) => Promise<void>;
  readonly onError: (error: unknown) => void;
}): Service {
  const stopping = new AbortController();
  let running = Promise.resolve();

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await options.run(stopping.signal).catch(options.onError);
      await sleep(options.everyMs, stopping.signal);
    }
  };

  return {
    name: options.name,
    async start() {
      running = loop();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
