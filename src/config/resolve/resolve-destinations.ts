import type { Check } from '../check.ts';
import type { DestinationValues } from '../formats/destination-formats.ts';
import type {
  DestinationSettings,
  HttpDestination,
  KafkaDestination,
  SmtpDestination,
} from './destinations.ts';
import { childPath } from '../key-path.ts';
import { resolveHeaders, resolveTls } from './resolve-call.ts';
import { readRequestSchema } from '../formats/request-schema.ts';
import { openSecret } from '../layers/secret-value.ts';

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
  return Object.entries(values).map(([name, each]) => resolve(name, each, rules, check));
}

function resolve(
  name: string,
  values: DestinationValues,
  rules: DestinationRules,
  check: Check,
): DestinationSettings {
  const path = childPath('outbox.destinations', name);
  const common = {
    name,
    maxInFlight: values.maxInFlight ?? rules.maxInFlight,
    maxAgeMs: values.maxAgeMs ?? rules.maxAgeMs,
    schema: schemaOf(path, values.schema, check),
  };
  const destination = resolveType({ path, common, values, rules, check });
  checkLease(path, destination, rules, check);
  return destination;
}

type Case<V> = Readonly<{
  path: string;
  common: Pick<DestinationSettings, 'name' | 'maxInFlight' | 'maxAgeMs' | 'schema'>;
  values: V;
  rules: DestinationRules;
  check: Check;
}>;

function resolveType(of: Case<DestinationValues>): DestinationSettings {
  switch (of.values.type) {
    case 'http':
      return resolveHttpDestination({ ...of, values: of.values });
    case 'kafka':
      return resolveKafkaDestination({ ...of, values: of.values });
    case 'smtp':
      return resolveSmtpDestination({ ...of, values: of.values });
  }
}

type HttpValues = Extract<DestinationValues, { type: 'http' }>;
type KafkaValues = Extract<DestinationValues, { type: 'kafka' }>;
type SmtpValues = Extract<DestinationValues, { type: 'smtp' }>;

function resolveHttpDestination({ path, common, values, rules, check }: Case<HttpValues>): HttpDestination {
  checkDedupWindow(path, values, rules, check);
  if (values.status !== undefined && values.statusUrl === undefined)
    check.report([`${path}.status_url`, `${path}.status`], `is missing, but ${path}.status is set`);
  return {
    ...values,
    ...common,
    headers: resolveHeaders(path, values.headers, check),
    tls: resolveTls(path, { urls: [values.url, values.statusUrl ?? ''], files: values.tls }, check),
  };
}

/** A key that the ledger forgets earlier could be used again while the destination still takes it for the old one. */
function checkDedupWindow(
  path: string,
  { idempotency, dedupWindowMs }: HttpValues,
  { ledgerTtlMs }: DestinationRules,
  check: Check,
): void {
  const isGiven = check.given.has(`${path}.dedup_window`);
  if (idempotency === 'none' && !isGiven) return;
  if (idempotency === 'none') check.warn(`${path}.dedup_window is not used: ${path}.idempotency is none`);
  if (dedupWindowMs > ledgerTtlMs)
    check.report([`${path}.dedup_window`, 'outbox.ledger_ttl'], 'must not be longer than outbox.ledger_ttl');
}

function resolveKafkaDestination({
  path,
  common,
  values,
  rules,
  check,
}: Case<KafkaValues>): KafkaDestination {
  if (!rules.kafkaEnabled) check.warn(`${path} is not served while Kafka is disabled: its orders wait`);
  return { ...values, ...common, timeoutMs: values.timeoutMs ?? rules.publishTimeoutMs };
}

function resolveSmtpDestination({ path, common, values, check }: Case<SmtpValues>): SmtpDestination {
  return { ...values, ...common, ...resolveMailServer(path, values, check) };
}

/** The port that goes with the security, and the password if it can be read. */
export function resolveMailServer(
  path: string,
  values: Readonly<Pick<SmtpValues, 'port' | 'security' | 'user' | 'password'>>,
  check: Check,
): Readonly<Pick<SmtpDestination, 'port' | 'password'>> {
  const { user, password, security } = values;
  if (user !== undefined && password === undefined)
    check.report([`${path}.password`, `${path}.user`], `is missing, but ${path}.user is set`);
  if (password !== undefined && user === undefined)
    check.report([`${path}.user`, `${path}.password`], `is missing, but ${path}.password is set`);
  if (password !== undefined && security === 'none')
    check.warn(`${path}.password is sent in the clear: ${path}.security is none`);
  const opened = password && openSecret(password, reasonAgainstPassword);
  if (opened?.ok === false) check.report([`${path}.password${opened.at}`], opened.reason);
  return {
    port: values.port ?? (security === 'implicit' ? 465 : 587),
    password: opened?.ok === true ? opened.value : undefined,
  };
}

const reasonAgainstPassword = (value: string): string | undefined =>
  /\p{Cc}/u.test(value) ? 'one line without control characters' : undefined;

function schemaOf(path: string, name: string | undefined, check: Check): DestinationSettings['schema'] {
  if (name === undefined) return undefined;
  const read = readRequestSchema(name);
  if (read.ok) return read.value;
  for (const { reason } of read.issues) check.report([`${path}.schema`], reason);
  return undefined;
}

/** A lease that ends while a call may still be under way would let two processes send one order. */
function checkLease(
  path: string,
  destination: DestinationSettings,
  { leaseMs }: DestinationRules,
  { report }: Check,
): void {
  // A call that ends in doubt is followed by a question to the status URL, which may take as long again.
  const asks = destination.type === 'http' && destination.statusUrl !== undefined;
  if (destination.timeoutMs * (asks ? 2 : 1) < leaseMs) return;
  report(
    [`${path}.timeout_ms`, 'outbox.stuck_threshold_min'],
    asks
      ? 'must be less than half of outbox.stuck_threshold_min: the question to status_url may take as long again'
      : 'must be less than outbox.stuck_threshold_min',
  );
}
