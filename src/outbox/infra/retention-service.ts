import { sleep } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import { createNamedLease } from '../../platform/postgres/named-lease.ts';
import type { Worker } from '../../platform/postgres/work.ts';
import type { AuditMaintenance, Purged, Retention } from './postgres-retention.ts';

export type RetentionServiceOptions = Readonly<{
  retention: Retention;
  purgeEveryMs?: number;
  maintainAuditEveryMs?: number;
  onPurged: (purged: Purged) => void;
  onAuditMaintained: (maintenance: AuditMaintenance) => void;
  onError: (error: unknown) => void;
}>;

const minuteMs = 60_000;

/**
 * One replica purges every minute and looks after the audit's months every hour, first when it has got the lease.
 * Neither keeps the other waiting: what fails is reported, and comes again a minute later.
 */
export function createRetentionService(
  worker: Worker,
  {
    retention,
    purgeEveryMs = minuteMs,
    maintainAuditEveryMs = 60 * minuteMs,
    onPurged,
    onAuditMaintained,
    onError,
  }: RetentionServiceOptions,
): Service {
  const purge = async (held: AbortSignal): Promise<number> => {
    onPurged(await retention.purge(held));
    return purgeEveryMs;
  };
  const maintainAudit = async (): Promise<number> => {
    const maintenance = await retention.maintainAudit();
    onAuditMaintained(maintenance);
    return maintenance.outcome === 'busy' ? Math.min(minuteMs, maintainAuditEveryMs) : maintainAuditEveryMs;
  };
  /** `run` says how long to wait until its next time. */
  const repeat = async (run: (held: AbortSignal) => Promise<number>, held: AbortSignal): Promise<void> => {
    while (!held.aborted) {
      const waitMs = await run(held).catch((error: unknown) => {
        onError(error);
        return minuteMs;
      });
      await sleep(waitMs, held);
    }
  };

  return createNamedLease(worker, {
    name: 'outbox.retention',
    leaseMs: 30_000,
    async work(held) {
      await Promise.all([repeat(maintainAudit, held), repeat(purge, held)]);
    },
    onError,
  });
}
