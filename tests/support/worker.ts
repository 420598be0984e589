import { systemClock } from '../../src/kernel/clock.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import type { Worker } from '../../src/platform/work/work.ts';

/** A worker of its own name that counts its stale writes. */
export function createTestWorker(
  db: Database,
  owner = 'worker-1',
): Worker & { readonly stale: { count: number } } {
  const stale = { count: 0 };
  return { db, clock: systemClock, owner, stale, onStale: (_slice, count) => void (stale.count += count) };
}
