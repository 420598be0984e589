import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { AttemptResult } from './attempt.ts';
import type { DispatchDeps } from './dispatch-orders.ts';
import type { SettledOrder } from './settle-orders.ts';

/** Counts and logs the attempts of this process. */
export type SendMetrics = Pick<DispatchDeps, 'onClaim' | 'onSettled' | 'onLost'>;

export function createSendMetrics(metrics: Metrics, log: Logger): SendMetrics {
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

  return {
    onClaim: (count) => dequeued.inc({ result: count > 0 ? 'success' : 'empty' }),
    onSettled(result, settled) {
      const { order, settlement } = result;
      const outcome = outcomeOf(result, settled);
      sends.inc({ outcome });
      if (settled.status === 'sent' || settled.status === 'dead') retries.observe(order.retryCount);
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

function outcomeOf({ settlement }: AttemptResult, { status }: SettledOrder): string {
  if (status === null) return 'stale';
  if (status === 'sent')
    return settlement.to === 'sent' && settlement.isConflict ? 'conflict_processed' : 'success';
  if (status === 'dead') return 'dead';
  return settlement.to === 'released' ? 'released' : 'retry';
}
