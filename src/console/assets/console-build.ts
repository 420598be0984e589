import { messageOf } from '../../kernel/errors.ts';
import type { Service } from '../../kernel/service.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { buildConsole, type BuildOptions } from './build-console.ts';
import { readBuiltAssets, type BuiltAssets } from './built-assets.ts';

export type ConsoleState =
  | Readonly<{ kind: 'building' }>
  | Readonly<{ kind: 'ready'; assets: BuiltAssets }>
  | Readonly<{ kind: 'failed'; reason: string }>;

export type ConsoleBuild = Service & Readonly<{ state(): ConsoleState }>;

/** Builds the console in the background if its sources have changed: the API never waits for it. */
export function createConsoleBuild(
  logger: Logger,
  build: (options: BuildOptions) => Promise<string> = buildConsole,
): ConsoleBuild {
  const stop = new AbortController();
  let state: ConsoleState = { kind: 'building' };
  let running: Promise<void> = Promise.resolve();

  const run = async (): Promise<void> => {
    const startedMs = performance.now();
    let isNew = false;
    const onBuild = (): void => {
      isNew = true;
      logger.info('building the console');
    };
    try {
      const folder = await build({ signal: stop.signal, onBuild });
      state = { kind: 'ready', assets: await readBuiltAssets(folder) };
      const tookMs = Math.round(performance.now() - startedMs);
      if (isNew) logger.info({ duration_ms: tookMs }, 'built the console');
    } catch (error) {
      if (stop.signal.aborted) return;
      state = { kind: 'failed', reason: messageOf(error) };
      logger.warn({ err: error }, 'failed to build the console; the API is not affected');
    }
  };

  return {
    name: 'console build',
    state: () => state,
    async start() {
      running = run();
    },
    async stop() {
      stop.abort();
      await running;
    },
  };
}
