import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { HttpApp } from '../http-app.ts';
import { HttpFault } from '../errors/http-fault.ts';

export type LoadOptions = Readonly<{
  /** Mean delay of the event loop above which the process is overloaded. */
  maxDelayMs: number;
  sampleMs: number;
}>;

/** So many late samples in a row are an overload; one long pause is not. */
const lateSamples = 3;
/** Small against an overload; finer samples would cost CPU time. */
const resolutionMs = 20;
/** An overload that is shed is usually over by then. */
const retryAfterS = 5;

/**
 * Answers 503 while the process is overloaded: what it has begun is finished, and its leases are renewed, before it takes
 * on more. Probes and metrics, which no slice owns, are answered.
 */
export function shedLoad(app: HttpApp, { maxDelayMs, sampleMs }: LoadOptions): void {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  let late = 0;
  const isOverloaded = (): boolean => late >= lateSamples;

  const sample = (): void => {
    // Without a single tick there is no mean.
    const meanMs = delays.count === 0 ? sampleMs : delays.mean / 1e6 - resolutionMs;
    delays.reset();
    const wasOverloaded = isOverloaded();
    late = meanMs > maxDelayMs ? late + 1 : 0;
    if (isOverloaded() !== wasOverloaded)
      app.log.warn(
        { event_loop_delay_ms: Math.round(meanMs) },
        wasOverloaded ? 'accepting requests again' : 'rejecting requests: the process is overloaded',
      );
  };
  const sampling = setInterval(sample, sampleMs).unref();
  app.addHook('onClose', (_app, done) => {
    clearInterval(sampling);
    delays.disable();
    done();
  });

  app.addHook('onRequest', (request, _reply, done) => {
    const isShed = isOverloaded() && request.routeOptions.config.slice !== undefined;
    done(isShed ? overloaded() : undefined);
  });
}

function overloaded(): HttpFault {
  return new HttpFault(503, 'the server is overloaded; try again', {
    headers: { 'retry-after': String(retryAfterS) },
  });
}
