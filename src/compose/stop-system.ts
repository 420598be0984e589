import { stopAll, type Service } from '../kernel/service.ts';
import type { Logger } from '../platform/telemetry/logger.ts';

/** After the services have stopped: connections and telemetry, and room for a busy machine. */
const closingMs = 4000;

/** How long the services may take, so that the process ends in time. */
export const stopWithin = (shutdownTimeoutMs: number): number => shutdownTimeoutMs - closingMs;

type Running = Readonly<{
  services: readonly Service[];
  opened: Close[];
  logger: Logger;
  stopWithinMs: number;
}>;

export async function stopSystem({ services, opened, logger, stopWithinMs }: Running): Promise<void> {
  logger.info('stopping');
  await stopAll(services, stopWithinMs, (service, error) =>
    logger.warn({ err: error }, `${service.name} did not stop cleanly`),
  );
  await closeAll(opened);
  logger.info('stopped');
}

/** Closes a connection or a process. */
export type Close = () => Promise<unknown>;

/** In reverse order of opening. */
export async function closeAll(opened: Close[]): Promise<void> {
  for (const close of opened.splice(0).toReversed()) await close();
}
