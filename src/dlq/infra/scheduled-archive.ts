import { Cron } from 'croner';
import { sleep } from '../../kernel/clock.ts';
import type { ArchiveStore } from '../usecase/ports.ts';

export type ArchiveSchedule = Readonly<{
  store: ArchiveStore;
  schedule: string;
  retentionDays: number;
  purgeDays: number;
  onArchived: (archived: number, purged: number) => void;
}>;

/** Archives and purges at the scheduled times, for as long as this process holds the lease on it. */
export async function archiveOnSchedule(options: ArchiveSchedule, held: AbortSignal): Promise<void> {
  const cron = new Cron(options.schedule, { paused: true, timezone: 'UTC' });
  while (!held.aborted) {
    // In steps, because a timer cannot wait for months and a machine may sleep meanwhile.
    const waitMs = cron.msToNext() ?? 86_400_000;
    await sleep(Math.min(waitMs, 3_600_000), held);
    if (held.aborted || waitMs > 3_600_000) continue;
    const archived = await options.store.archive(options.retentionDays);
    const purged = await options.store.purge(options.purgeDays);
    options.onArchived(archived, purged);
    // The tick that was just served must not be met a second time.
    await sleep(1000, held);
  }
}
