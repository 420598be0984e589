import { sleep } from './clock.ts';
import type { Service } from './service.ts';

/** A service that repeats one action. A failed round is reported, and the loop continues. */
export function createLoop(options: {
  readonly name: string;
  /** The pause after each round. */
  readonly everyMs: number | (() => number);
  readonly run: (stopping: AbortSignal) => Promise<void>;
  /** Called at the start, and after every round without an error. */
  readonly beat?: (() => void) | undefined;
  readonly onError: (error: unknown) => void;
}): Service {
  const { everyMs } = options;
  const stopping = new AbortController();
  let running = Promise.resolve();

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await options.run(stopping.signal).then(options.beat, options.onError);
      await sleep(typeof everyMs === 'number' ? everyMs : everyMs(), stopping.signal);
    }
  };

  return {
    name: options.name,
    async start() {
      options.beat?.();
      running = loop();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
