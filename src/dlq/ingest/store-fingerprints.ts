import type { Clock } from '../../kernel/clock.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import type { DeadLetter } from '../domain/dead-letter.ts';
import { storeBases } from '../fingerprints-table.ts';

export type StoreFingerprints = (db: Queryable, letters: readonly DeadLetter[]) => Promise<void>;

const rememberedMax = 10_000;
/** Retention deletes causes without messages: those have to be stored again. */
const rememberedMs = 3_600_000;

/**
 * Stores what new fingerprints were made of, before their messages. Those that were stored are remembered, so a batch
 * with known causes costs no statement.
 */
export function createFingerprintStore(clock: Clock): StoreFingerprints {
  const stored = new Set<string>();
  let sinceMs = clock.monotonicMs();
  return async (db, letters) => {
    if (clock.monotonicMs() - sinceMs > rememberedMs) {
      stored.clear();
      sinceMs = clock.monotonicMs();
    }
    const found = new Map(
      letters.flatMap(({ fingerprint, fingerprintBasis: basis }) =>
        fingerprint === null || basis === null || stored.has(fingerprint)
          ? []
          : [[fingerprint, basis] as const],
      ),
    );
    await storeBases(db, found);
    if (stored.size + found.size > rememberedMax) stored.clear();
    for (const fingerprint of found.keys()) stored.add(fingerprint);
  };
}
