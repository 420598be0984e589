import type { Check } from '../check.ts';
import { childPath } from '../key-path.ts';
import type { DestinationValues } from '../sections/destinations.ts';
import { resolvePort, warnClearPassword } from './resolve-mail-server.ts';
import { warnUnusedTls } from './warn-unused-tls.ts';

type Always = Readonly<{ name: string; maxInFlight: number; timeoutMs: number; maxAgeMs: number }>;
type Resolved<V> = V extends { type: 'smtp' } ? Omit<V, 'port'> & Readonly<{ port: number }> : V;
type Named<V> = V extends unknown ? Omit<Resolved<V>, keyof Always> & Always : never;

/** Where orders go. Keys that were left out have the values that follow from others. */
export type DestinationSettings = Named<DestinationValues>;

/** What holds for every destination, and the defaults that follow from other keys. */
export type DestinationRules = Readonly<{
  leaseMs: number;
  ledgerTtlMs: number;
  maxInFlight: number;
  maxAgeMs: number;
  kafkaEnabled: boolean;
  publishTimeoutMs: number;
}>;

export function resolveDestinations(
  values: Readonly<Record<string, DestinationValues>>,
  rules: DestinationRules,
  check: Check,
): readonly DestinationSettings[] {
  return Object.entries(values).map(([name, each]) => {
    const path = childPath('outbox.destinations', name);
    const destination = resolve(name, each, rules);
    checkDestination({ path, destination, rules, check });
    return destination;
  });
}

function resolve(name: string, values: DestinationValues, rules: DestinationRules): DestinationSettings {
  const common = {
    name,
    maxInFlight: values.maxInFlight ?? rules.maxInFlight,
    maxAgeMs: values.maxAgeMs ?? rules.maxAgeMs,
    timeoutMs: values.timeoutMs ?? rules.publishTimeoutMs,
  };
  return values.type === 'smtp'
    ? { ...values, ...common, port: resolvePort(values) }
    : { ...values, ...common };
}

type Case<T> = Readonly<{ path: string; destination: T; rules: DestinationRules; check: Check }>;

function checkDestination({ destination, ...rest }: Case<DestinationSettings>): void {
  const { path, rules, check } = rest;
  if (destination.type === 'http') checkHttp({ ...rest, destination });
  if (destination.type === 'kafka' && !rules.kafkaEnabled)
    check.warn(`${path} is not served while Kafka is disabled: its orders wait`);
  if (destination.type === 'smtp') warnClearPassword(path, destination, check);
  checkLease({ ...rest, destination });
}

function checkHttp({
  path,
  destination,
  rules,
  check,
}: Case<Extract<DestinationSettings, { type: 'http' }>>): void {
  const { url, status, statusUrl = '', tls, idempotency, dedupWindowMs } = destination;
  if (status !== undefined && statusUrl === '')
    check.report([`${path}.status_url`, `${path}.status`], `is missing, but ${path}.status is set`);
  warnUnusedTls(path, { urls: [url, statusUrl], tls }, check);
  if (idempotency === 'none' && !check.given.has(`${path}.dedup_window`)) return;
  if (idempotency === 'none') check.warn(`${path}.dedup_window is not used: ${path}.idempotency is none`);
  // A key that the ledger forgets earlier could be used again while the destination still takes it for the old one.
  if (dedupWindowMs > rules.ledgerTtlMs)
    check.report([`${path}.dedup_window`, 'outbox.ledger_ttl'], 'must not be longer than outbox.ledger_ttl');
}

/** A lease that ends while a call may still be under way would let two processes send one order. */
function checkLease({ path, destination, rules, check }: Case<DestinationSettings>): void {
  // A call that ends in doubt is followed by a question to the status URL, which may take as long again.
  const asks = destination.type === 'http' && destination.statusUrl !== undefined;
  if (destination.timeoutMs * (asks ? 2 : 1) < rules.leaseMs) return;
  check.report(
    [`${path}.timeout_ms`, 'outbox.stuck_threshold_min'],
    asks
      ? 'must be less than half of outbox.stuck_threshold_min: the question to status_url may take as long again'
      : 'must be less than outbox.stuck_threshold_min',
  );
}
