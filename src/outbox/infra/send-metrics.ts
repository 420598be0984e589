import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { SettledAttempt } from '../usecase/ports.ts';
import type { Sent } from '../usecase/send-claimed.ts';

/** Counts what this process sends, and logs what a person should see. */
export type SendMetrics = Readonly<{
  onClaim(count: number): void;
  onSettled(sent: Sent, settled: SettledAttempt): void;
  /** It could not be written down how an attempt ended. */
  onLost(sent: Sent, error: unknown): void;
}>;

export function createSendMetrics(metrics: Metrics, log: Logger): SendMetrics {
  const dequeued = metrics.counter({
    name: 'outbox_dequeue_total',
    help: 'Claims, by whether there was anything to claim.',
    labelNames: ['result'],
  });
  const sends = metrics.counter({
    name: 'outbox_send_total',
    help: 'Attempts to send an order, by how they ended.',
    labelNames: ['outcome'],
  });
  const retries = metrics.histogram({
    name: 'outbox_retry_count',
    help: 'Retries that an order had needed when it ended.',
    buckets: [0, 1, 2, 3, 4, 5, 6, 7, 8],
  });

  return {
    onClaim: (count) => dequeued.inc({ result: count > 0 ? 'success' : 'empty' }),
    onSettled(sent, settled) {
      const { order, settlement } = sent;
      const outcome = outcomeOf(sent, settled);
      sends.inc({ outcome });
      if (settled.status === 'sent' || settled.status === 'dead') retries.observe(order.retryCount);
      const facts = factsOf(sent);
      if (settled.status === 'dead')
        log.warn(
          { ...facts, error: 'error' in settlement ? settlement.error : undefined },
          'an order is dead and needs a person',
        );
      else log.debug({ ...facts, outcome }, 'an attempt has ended');
    },
    onLost(sent, error) {
      const { to } = sent.settlement;
      const end = to === 'sent' ? 'its effect has happened outside' : `it would be ${to}`;
      log.error({ ...factsOf(sent), err: error }, `the end of an attempt could not be stored: ${end}`);
    },
  };
}

function factsOf({ order }: Sent): Readonly<Record<string, unknown>> {
  return {
    order_id: String(order.id),
    idempotency_key: order.idempotencyKey,
    destination: order.destination,
    retry_count: order.retryCount,
    trace_id: order.traceId,
  };
}

function outcomeOf({ settlement }: Sent, { status }: SettledAttempt): string {
  if (status === null) return 'stale';
  if (status === 'sent')
    return settlement.to === 'sent' && settlement.isConflict ? 'conflict_processed' : 'success';
  if (status === 'dead') return 'dead';
  return settlement.to === 'released' ? 'released' : 'retry';
}
