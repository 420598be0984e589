import { onceAborted } from './clock.ts';

/**
 * Everything that runs is a service. `start` resolves when it runs (it does not wait for outside systems that
 * may be away); `stop` drains: no new work, what was not started is given back, what runs may finish until the
 * signal says that time is up. Both may be called once each; stop after a failed start is allowed.
 */
export type Service = Readonly<{
  name: string;
  start(): Promise<void>;
  stop(deadline: AbortSignal): Promise<void>;
}>;

/** Starts in order. If one fails, those already started are stopped in reverse and the failure is thrown. */
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
 * Stops in reverse order within one common deadline. One that fails to stop, or hangs, does not keep the others
 * running: at the deadline it is left behind, and its leases run out.
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
