import { sleep } from '../../kernel/clock.ts';
import { codeOf } from '../../kernel/errors.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { createNamedLease } from '../../platform/work/named-lease.ts';
import type { Worker } from '../../platform/work/work.ts';
import type { Seal } from '../chain.ts';
import { selectLastRound } from '../events-table.ts';
import {
  isSettled,
  oldestUnsealedMs,
  readLastNumber,
  sealRound,
  takeMark,
  type Mark,
  type SealedRound,
} from './seal-round.ts';

export type SealerDeps = Readonly<{
  db: Database;
  worker: Worker;
  metrics: Metrics;
  logger: Logger;
  /** Sends the blocks to a place outside the database, in the transaction that stores them; null: they are only logged. */
  addAnchors: ((tx: Queryable, seals: readonly Seal[]) => Promise<void>) | null;
  /** Writes the events as lines of JSON. */
  writeLines: (round: SealedRound) => void;
}>;

/** Of a transaction that was running when a mark was taken. */
const lookAgainMs = 250;
const uniqueViolation = '23505';

/**
 * Seals the audit log: one process at a time, every ten seconds. A mark says up to where the log was written; when all
 * transactions have ended that could still write before it, the events up to it are sealed. A transaction that runs for
 * long delays the seal, and `audit_last_seal_timestamp_seconds` shows it: every event that is older is sealed.
 */
export function createSealer(deps: SealerDeps, everyMs = 10_000): Service {
  const { db, worker, logger } = deps;
  const lastSeal = deps.metrics.gauge({
    name: 'audit_last_seal_timestamp_seconds',
    help: 'Every event of the audit log that is older than this is sealed, as far as this process knows.',
  });

  /** No event up to this number is unsealed, or can appear any more. */
  let sealedUpTo: number | null = null;

  /** Null if no event was written since everything was sealed. */
  const nextMark = async (): Promise<Mark | null> => {
    const last = await readLastNumber(db);
    if (last.seq !== sealedUpTo) return takeMark(db, last);
    lastSeal.set(last.atMs / 1000);
    return null;
  };

  /** Returns the mark if it cannot be sealed yet. */
  const sealUpTo = async (mark: Mark, signal: AbortSignal): Promise<Mark | null> => {
    if (!(await isSettled(db, mark))) return mark;
    while (!signal.aborted) {
      const round = await sealRound(db, mark, async (tx, sealed) => {
        // Before the commit: after a crash they are written again, and none is lost.
        deps.writeLines(sealed);
        await deps.addAnchors?.(tx, sealed.seals);
      });
      if (round === null) {
        lastSeal.set(mark.atMs / 1000);
        sealedUpTo = mark.seq;
        return null;
      }
      logSeals(logger, round.seals);
    }
    return mark;
  };

  const work = async (signal: AbortSignal, beat: () => void): Promise<void> => {
    let mark: Mark | null = null;
    // A process that was killed after the commit has not logged its last round: every block is logged at least once.
    logSeals(logger, await selectLastRound(db));
    while (!signal.aborted) {
      mark ??= await nextMark();
      if (mark !== null) mark = await sealUpTo(mark, signal);
      beat();
      await sleep(mark === null ? everyMs : Math.min(lookAgainMs, everyMs), signal);
    }
  };

  const lease = createNamedLease(worker, {
    name: 'audit.seal',
    work,
    onError: (error) => logFailure(logger, error),
  });
  return {
    name: lease.name,
    async start() {
      // Before the first round: what is known to be unsealed, so that a sealer that never succeeds is noticed.
      lastSeal.set(Date.now() / 1000);
      void oldestUnsealedMs(db).then(
        (oldestMs) => oldestMs === null || lastSeal.set(oldestMs / 1000),
        () => {},
      );
      await lease.start();
    },
    stop: (deadline) => lease.stop(deadline),
  };
}

function logSeals(logger: Logger, seals: readonly Seal[]): void {
  for (const { block, hash, events, last_seq } of seals)
    logger.info({ block, hash, events, last_seq }, 'sealed audit events');
}

function logFailure(logger: Logger, error: unknown): void {
  if (codeOf(error) === uniqueViolation)
    logger.info({ err: error }, 'another process sealed these audit events');
  else logger.warn({ err: error }, 'failed to seal audit events; retrying');
}
