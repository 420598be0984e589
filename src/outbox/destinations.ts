import { AppError } from '../kernel/errors.ts';
import type { GateSnapshot } from './domain/circuit.ts';
import type { SendPolicy } from './domain/order.ts';

/** A configured destination, as far as it concerns more than the sending itself. */
export type Destination = Readonly<{
  name: string;
  type: 'http' | 'kafka' | 'smtp';
  /** Used by the system itself: callers cannot post to it, it has no ledger, and its dead orders notify nobody. */
  isInternal: boolean;
  policy: SendPolicy;
  /** How many orders one process sends to it at once. */
  maxInFlight: number;
  /** It can be asked whether an order has had its effect. */
  hasStatusUrl: boolean;
  /** Validates a request against the destination's JSON Schema; empty if it is valid or there is no schema. */
  flawsOf: (request: unknown) => readonly RequestFlaw[];
}>;

export type RequestFlaw = Readonly<{ field: string; reason: string; message: string }>;

/** Throttle and circuit are shared by all processes; `inFlight` counts this process only. */
export type DestinationStatus = Readonly<{ snapshot: GateSnapshot; inFlight: number }>;

/** The error for a request that does not match the destination's schema; null if it matches. */
export function schemaViolation(
  { name, flawsOf }: Pick<Destination, 'name' | 'flawsOf'>,
  request: unknown,
): AppError | null {
  const flaws = flawsOf(request);
  if (flaws.length === 0) return null;
  const first = flaws.slice(0, 3).map(({ field, message }) => `${field} ${message}`);
  const more = flaws.length > first.length ? `; and ${flaws.length - first.length} more` : '';
  const message = `the request does not match the schema of ${name}: ${first.join('; ')}${more}`;
  return new AppError('SYS_OUTBOX_SCHEMA_VIOLATION', 'semantic', message, { details: flaws });
}
