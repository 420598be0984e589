import type { Check } from '../check.ts';
import type { Settings } from '../schema.ts';

/** The same port twice would fail only when the server listens. */
export function checkMetricsPort(server: Settings['server'], check: Check): void {
  const { host, port, metricsPort, metricsHost } = server;
  if (metricsPort === undefined && metricsHost !== undefined)
    check.report(['server.metrics_host', 'server.metrics_port'], 'is set, but server.metrics_port is not');
  if (metricsPort === port && port !== 0 && (metricsHost ?? host) === host)
    check.report(['server.metrics_port', 'server.port'], `is server.port (${port}): choose another one`);
}
