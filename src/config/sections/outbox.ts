import { destinations } from './destinations.ts';
import { decimal, duration, section, wholeNumber } from '../formats/value.ts';

export const outbox = section({
  batch_size: wholeNumber(1, 10_000, { default: 32, description: 'orders per claim' }),
  parallelism: wholeNumber(1, 100, { default: 4, description: 'claim loops per process' }),
  retry_max: wholeNumber(0, 1000, { default: 8, description: 'retries after the first attempt' }),
  idle_sleep_ms: wholeNumber(1, 60_000, {
    default: 200,
    description:
      'poll interval in milliseconds when nothing is due. With LISTEN, new orders are found at once, and an idle process [polls less often](../operations.md#how-soon-work-is-found)',
  }),
  stuck_threshold_min: decimal(0.001, 1440, {
    default: 10,
    description:
      'lease of an order that is being sent, in minutes; fractions are allowed (`0.5`). It must be longer than every `timeout_ms`, and than twice the `timeout_ms` of a destination with `status_url`',
  }),
  ledger_ttl: duration('1s', '3650d', {
    default: '48h',
    description:
      'how long an idempotency key is remembered after its order was sent or resolved; not less than any `dedup_window`',
  }),
  audit_retention: duration('1d', '36500d', {
    default: '400d',
    description: 'retention of the audit log; it is dropped by month',
  }),
  max_age: duration('1s', '365d', {
    default: '24h',
    description: 'how long an order is retried that gets only 429 answers; destinations may override it',
  }),
  backoff: section({
    initial_ms: wholeNumber(1, 3_600_000, {
      default: 2000,
      description: 'backoff before the first retry, in milliseconds; it doubles with each retry',
    }),
    max_ms: wholeNumber(1, 86_400_000, {
      default: 256_000,
      description: 'longest backoff, in milliseconds; not less than `initial_ms`',
    }),
    jitter: decimal(0, 1, { default: 0.1, description: 'random share of the backoff, in both directions' }),
  }),
  probe: section({
    initial_ms: wholeNumber(1, 3_600_000, {
      default: 5000,
      description: 'shortest interval between probes of a destination whose circuit is open, in milliseconds',
    }),
    max_ms: wholeNumber(1, 3_600_000, { default: 60_000, description: 'longest interval, in milliseconds' }),
  }),
  destinations: destinations({
    description: 'where orders go, by names of your own: see [Destinations](#destinations)',
  }),
});
