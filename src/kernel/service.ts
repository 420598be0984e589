import { onceAborted } from './clock.ts';

/**
 * Everything that runs is a service. `start` resolves when it runs; it does not wait for external systems. `stop`
 * drains: no new work, unstarted work is given back, running work may finish until the deadline aborts. Both are called
 * at most once; stop after a failed start is allowed.
 */
export type Service = Readonly<{
  name: string;
  start(): Promise<void>;
  stop(deadline: AbortSignal): Promise<void>;
}>;

/** Starts in order. If one fails, stops those that were started, in reverse, and throws the error. */
export async function startAll(services: readonly Service[], stopWithinMs: number): Promise<void> {
  const started: Service[] = [];
  for (const service of services) {
    try {
      await service.start();
      started.push(service);
    } catch (error) {
      await stopAll(started, stopWithinMs);
      throw error;
    }
  }
}

/**
 * Stops in reverse order within one common deadline. A service that fails to stop, or hangs, does not keep the others
 * running: at the deadline it is abandoned, and its leases expire.
 */
export async function stopAll(
  services: readonly Service[],
  withinMs: number,
  onError: (service: Service, error: unknown) => void = () => {},
): Promise<void> {
  const deadline = AbortSignal.timeout(withinMs);
  for (const service of services.toReversed()) {
    try {
      await Promise.race([service.stop(deadline), onceAborted(deadline)]);
    } catch (error) {
      onError(service, error);
    }
  }
}
