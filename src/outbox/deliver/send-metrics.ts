import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { AttemptResult } from './attempt.ts';
import type { DispatchDeps } from './dispatch-orders.ts';
import type { SettledOrder } from './settle-orders.ts';

/** Counts and logs the attempts of this process. */
export type SendMetrics = Pick<DispatchDeps, 'onClaim' | 'onSettled' | 'onLost'>;

const sendOutcomes = ['success', 'retry', 'dead', 'conflict_processed', 'released', 'stale'] as const;

export function createSendMetrics(metrics: Metrics, log: Logger, clock: Clock): SendMetrics {
  const dequeued = metrics.counter({
    name: 'outbox_dequeue_total',
    help: 'Claims, by whether they found orders.',
    labelNames: ['result'],
  });
  const sends = metrics.counter({
    name: 'outbox_send_total',
    help: 'Attempts to send an order, by outcome.',
    labelNames: ['outcome'],
  });
  const retries = metrics.histogram({
    name: 'outbox_retry_count',
    help: 'Retries of an order when it became sent or dead.',
    buckets: [0, 1, 2, 3, 4, 5, 6, 7, 8],
  });
  const settleSeconds = metrics.histogram({
    name: 'outbox_settle_seconds',
    help: 'Time from the creation of an order until it became sent or dead.',
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 7200],
  });
  const unknown = metrics.counter({
    name: 'outbox_unknown_outcomes_total',
    help: 'Attempts whose effect is unknown: the request may have been received, and no answer came.',
  });
  for (const result of ['success', 'empty']) dequeued.inc({ result }, 0);
  for (const outcome of sendOutcomes) sends.inc({ outcome }, 0);

  return {
    onClaim: (count) => dequeued.inc({ result: count > 0 ? 'success' : 'empty' }),
    onSettled(result, settled) {
      const { order, settlement } = result;
      const outcome = outcomeOf(result, settled);
      sends.inc({ outcome });
      if (result.outcome?.end === 'unknown') unknown.inc();
      if (settled.status === 'sent' || settled.status === 'dead') {
        retries.observe(order.retryCount);
        const sinceClaimMs = clock.monotonicMs() - order.claimedAtMs;
        // An order may have been created with a time of 'infinity'.
        if (Number.isFinite(order.createdForMs))
          settleSeconds.observe((order.createdForMs + sinceClaimMs) / 1000);
      }
      const facts = factsOf(result);
      if (settled.status === 'dead')
        log.warn(
          { ...facts, error: 'error' in settlement ? settlement.error : undefined },
          'order died and needs attention',
        );
      else log.debug({ ...facts, outcome }, 'settled an attempt');
    },
    onLost(result, error) {
      const { to } = result.settlement;
      const lost = to === 'sent' ? 'its effect has happened' : `it would be ${to}`;
      log.error({ ...factsOf(result), err: error }, `failed to store the result of an attempt: ${lost}`);
    },
  };
}

function factsOf({ order }: AttemptResult): Readonly<Record<string, unknown>> {
  return {
    order_id: String(order.id),
    idempotency_key: order.idempotencyKey,
    destination: order.destination,
    retry_count: order.retryCount,
    trace_id: order.traceId,
  };
}

function outcomeOf({ settlement }: AttemptResult, { status }: SettledOrder): (typeof sendOutcomes)[number] {
  if (status === null) return 'stale';
  if (status === 'sent')
    return settlement.to === 'sent' && settlement.isConflict ? 'conflict_processed' : 'success';
  if (status === 'dead') return 'dead';
  return settlement.to === 'released' ? 'released' : 'retry';
}
