import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { GateReading } from '../usecase/describe-destinations.ts';
import type { DeliveryStore, Destination } from '../usecase/ports.ts';

/** What keeps orders from going out degrades: the rest of the process works, and the orders wait. */
export function destinationsCheck(
  store: DeliveryStore,
  destinations: ReadonlyMap<string, Destination>,
  gateOf: (destination: string) => GateReading | null,
): HealthCheck {
  return {
    name: 'outbox',
    critical: false,
    async check() {
      const waiting = await store.waitingDestinations();
      const unknown = waiting.filter((name) => !destinations.has(name));
      const disabled = waiting.filter((name) => destinations.get(name)?.isDisabled === true);
      const open = [...destinations.keys()].filter((name) => gateOf(name)?.snapshot.circuit.state === 'open');
      const troubles = [
        ...(unknown.length > 0
          ? [`orders wait for destinations unknown here: ${unknown.slice(0, 5).join(', ')}`]
          : []),
        ...(disabled.length > 0
          ? [`orders wait for destinations without a broker: ${disabled.slice(0, 5).join(', ')}`]
          : []),
        ...(open.length > 0 ? [`the circuit is open: ${open.slice(0, 5).join(', ')}`] : []),
      ];
      return troubles.length === 0
        ? { status: 'healthy' }
        : { status: 'degraded', message: troubles.join('; ') };
    },
  };
}
