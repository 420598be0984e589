import { startAll, stopAll, type Service } from '../kernel/service.ts';
import type { HttpServer } from '../platform/http/http-server.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { SchemaGate } from './schema-gate.ts';

export type ServicesToStart = Readonly<{
  /** In the order in which they start, with `http`. */
  services: readonly Service[];
  http: HttpServer;
  schema: SchemaGate;
  logger: Logger;
  stopWithinMs: number;
  /** Ends the wait for migrations. */
  stopAsked: AbortSignal;
}>;

/** Returns the services that run: all, or only HTTP if the stop was requested before the migrations were there. */
export async function startServices(options: ServicesToStart): Promise<readonly Service[]> {
  const { services, http, schema, logger, stopWithinMs, stopAsked } = options;
  const outdated = schema.outdated();
  if (outdated === null) {
    await startAll(services, stopWithinMs);
    return services;
  }
  await startAll([http], stopWithinMs);
  logger.warn({ url: http.address()?.url, error: outdated.message }, 'waiting for migrations');
  try {
    if (!(await schema.wait(stopAsked))) return [http];
    await startAll(
      services.filter((service) => service !== http),
      stopWithinMs,
    );
  } catch (error) {
    await stopAll([http], stopWithinMs);
    throw error;
  }
  schema.open();
  return services;
}
