import type { GateSnapshot } from './destination-gate.ts';
import type { Destination } from './ports.ts';
import type { Backlog, OrderReader } from './reading-ports.ts';

/** How a destination is being treated: throttle and circuit are shared by all, `inFlight` is this process's own. */
export type GateReading = Readonly<{ snapshot: GateSnapshot; inFlight: number }>;

export type DescribeDeps = Readonly<{
  reader: Pick<OrderReader, 'backlogs'>;
  destinations: ReadonlyMap<string, Pick<Destination, 'name' | 'type' | 'isInternal' | 'policy'>>;
  /** Null where this process has no gate to it. */
  gateOf: (destination: string) => GateReading | null;
}>;

export type DescribedDestination = Readonly<{
  name: string;
  /** Null where it has orders but this process does not know it. */
  settings: Pick<Destination, 'type' | 'isInternal' | 'policy'> | null;
  gate: GateReading | null;
  backlog: Backlog;
}>;

/** Every destination that this process knows, and every other that has orders waiting or under way, by name. */
export async function describeDestinations(deps: DescribeDeps): Promise<readonly DescribedDestination[]> {
  const backlogs = await deps.reader.backlogs([...deps.destinations.keys()]);
  return backlogs.map((backlog) => ({
    name: backlog.destination,
    settings: deps.destinations.get(backlog.destination) ?? null,
    gate: deps.gateOf(backlog.destination),
    backlog,
  }));
}
