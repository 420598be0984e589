import { sql } from '../../../platform/postgres/sql.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { messageOf } from '../../../kernel/errors.ts';
import { cleanText } from '../../../kernel/text.ts';
import type { Database, Queryable } from '../../../platform/postgres/database.ts';
import {
  canaryStep,
  maxWindows,
  stageAfter,
  tooManyReturned,
  type Canary,
  type CanaryStep,
} from '../../domain/canary.ts';
import { stopRedrive } from '../planned/end-redrive.ts';
import { exclusiveLock, holdRedrive, type LeasedRedrive } from '../planned/redrives-table.ts';
import { confirmStage, type ConfirmDeps, type Findings } from './confirm-stage.ts';
import { chooseDraw, storeDraw } from './draw-stage.ts';
import { readShare, readStage } from './read-stage.ts';

export type CanaryDeps = ConfirmDeps & Readonly<{ clock: Clock }>;

/** What the canary of a redrive decides while this process runs it; all of it is in the redrive's row and items. */
export type CanaryRun = Readonly<{
  /** Stops the redrive if too many of its messages have come back; true if it was stopped. */
  hasStopped(): Promise<boolean>;
  /** What to do when a pass has found nothing to send. */
  next(signal: AbortSignal): Promise<NextPass | 'ended' | 'finish'>;
}>;

/** `isNewPass`: there may be something to send again. */
export type NextPass = Readonly<{ isNewPass: boolean; restMs: number }>;

/** How late too many failures stop a stage; each check counts its items. */
const checkEveryMs = 500;
/** Before what could not be sent is tried again. */
const restMs = 500;
const atOnce: NextPass = { isNewPass: true, restMs: 0 };
const later = (ms: number): NextPass => ({ isNewPass: false, restMs: Math.ceil(ms) });

export function createCanaryRun(deps: CanaryDeps, redrive: LeasedRedrive): CanaryRun {
  let checkAtMs = 0;
  let window: Window | null = null;

  return {
    async hasStopped() {
      const nowMs = deps.clock.monotonicMs();
      if (nowMs < checkAtMs) return false;
      checkAtMs = nowMs + checkEveryMs;
      const share = await readShare(deps.db, redrive.id);
      const reason = share === null ? null : tooManyReturned(share.canary, share);
      if (reason !== null) await stopWithSample(deps.db, redrive, reason);
      return reason !== null;
    },
    async next(signal) {
      const nowMs = deps.clock.monotonicMs();
      const taken = await takeStep(deps.db, redrive, window === null ? 0 : nowMs - window.sinceMs);
      switch (taken.step) {
        case 'ended':
        case 'finish':
          return taken.step;
        case 'draw':
          await draw(deps.db, redrive, taken.count);
          return atOnce;
        case 'watch':
          window = null;
          return atOnce;
        case 'send':
          return { isNewPass: true, restMs };
        case 'wait':
          return later(taken.ms);
        case 'stop':
          await stopWithSample(deps.db, redrive, taken.reason);
          return 'ended';
        case 'confirm':
          window ??= { sinceMs: nowMs, tryAtMs: nowMs, findings: {}, waitingFor: null };
          return confirm(deps, redrive, { ...taken, window }, signal);
      }
    },
  };
}

/** A window that is over, as this process has seen it. */
type Window = { sinceMs: number; tryAtMs: number; findings: Findings; waitingFor: string | null };

type Taken = (CanaryStep | Readonly<{ step: 'ended' }>) & Readonly<{ canary?: Canary }>;

/** Decides on the next step while nobody else changes the redrive. */
async function takeStep(db: Database, redrive: LeasedRedrive, confirmingMs: number): Promise<Taken> {
  return db.transaction(
    async (tx) => {
      if ((await holdRunning(tx, redrive)) === null) return { step: 'ended' };
      const stage = await readStage(tx, redrive.id);
      if (stage === null) return { step: 'finish' };
      const { canary, view } = stage;
      const step = canaryStep(canary, { ...view, confirmingMs });
      if (step.step === 'watch') await startWindow(tx, redrive, canary);
      return { ...step, canary };
    },
    { isPatient: true },
  );
}

/** What was chosen is stored if the stage still wants it. */
async function draw(db: Database, redrive: LeasedRedrive, count: number): Promise<void> {
  const redriveId = redrive.id;
  const chosen = await chooseDraw(db, { redriveId, count, hasOrder: redrive.options.order === 'key' });
  await db.transaction(
    async (tx) => {
      if ((await holdRunning(tx, redrive)) === null) return;
      const stage = await readStage(tx, redriveId);
      if (stage === null) return;
      const { canary, view } = stage;
      const step = canaryStep(canary, { ...view, confirmingMs: 0 });
      if (step.step !== 'draw') return;
      const positions = chosen.slice(0, step.count);
      await storeDraw(tx, { redriveId, stage: view.stage, positions });
    },
    { isPatient: true },
  );
}

const holdRunning = (tx: Queryable, redrive: LeasedRedrive) =>
  holdRedrive(tx, redrive, { state: 'running', lock: exclusiveLock });

async function startWindow(
  tx: Queryable,
  { id }: LeasedRedrive,
  { watch_seconds: seconds }: Canary,
): Promise<void> {
  await tx.query(sql`
    UPDATE dlq.redrives SET watch_until = clock_timestamp() + ${seconds} * interval '1 second' WHERE id = ${id}`);
}

type Confirming = Readonly<{ window: Window; isOverdue: boolean; canary?: Canary }>;

async function confirm(
  deps: CanaryDeps,
  redrive: LeasedRedrive,
  { window, isOverdue, canary }: Confirming,
  signal: AbortSignal,
): Promise<NextPass | 'ended'> {
  const nowMs = deps.clock.monotonicMs();
  if (nowMs < window.tryAtMs) return later(window.tryAtMs - nowMs);
  const missing = await confirmStage(deps, redrive.id, window.findings, signal).catch(messageOf);
  if (signal.aborted) return 'ended';
  if (missing === null) {
    await closeWindow(deps.db, redrive);
    return atOnce;
  }
  if (isOverdue) {
    const reason = `not confirmed within ${maxWindows} windows: ${missing}`;
    await stopRedrive(deps.db, redrive, { by: 'canary', reason });
    return 'ended';
  }
  if (missing !== window.waitingFor) await noteWaiting(deps.db, redrive, missing);
  window.waitingFor = missing;
  window.tryAtMs = deps.clock.monotonicMs() + retryMs(canary);
  return later(retryMs(canary));
}

/** A tenth of the window, from a fifth of a second to five seconds. */
function retryMs(canary: Canary | undefined): number {
  return Math.min(5000, Math.max(200, (canary?.watch_seconds ?? 0) * 100));
}

/** What is shown as `waiting_for`; null when nothing is waited for. */
export async function noteWaiting(
  db: Queryable,
  { id, lease }: LeasedRedrive,
  what: string | null,
): Promise<void> {
  await db.query(sql`
    UPDATE dlq.redrives SET waiting_for = ${what === null ? null : cleanText(what, 1000)}
    WHERE id = ${id} AND lease_epoch = ${lease.epoch}`);
}

/** The next stage begins. What came back while the window was being confirmed still counts. */
async function closeWindow(db: Database, redrive: LeasedRedrive): Promise<void> {
  await db.transaction(
    async (tx) => {
      if ((await holdRunning(tx, redrive)) === null) return;
      const stage = await readStage(tx, redrive.id);
      if (stage === null) return;
      const { canary, view } = stage;
      const step = canaryStep(canary, { ...view, confirmingMs: 0 });
      if (step.step !== 'confirm') return;
      await tx.query(sql`
        UPDATE dlq.redrives SET stage = ${stageAfter(canary, view)}, watch_until = NULL, waiting_for = NULL
        WHERE id = ${redrive.id}`);
    },
    { isPatient: true },
  );
}

const sampleSize = 3;

/** The reason names some of the messages that came back. */
async function stopWithSample(db: Database, redrive: LeasedRedrive, reason: string): Promise<void> {
  const rows = await db.query<{ id: string; error: string | null }>(sql`
    SELECT i.message_id AS id, i.reason AS error FROM dlq.redrive_items i
    WHERE i.redrive_id = ${redrive.id} AND i.came_back_at IS NOT NULL AND i.outcome = 'came_back'
    ORDER BY i.came_back_at DESC LIMIT ${sampleSize}`);
  const sample = rows
    .map(({ id, error }) => `${id} (${cleanText(error ?? 'unknown error', 200)})`)
    .join(', ');
  await stopRedrive(db, redrive, { by: 'canary', reason: `${reason}; for example ${sample}` });
}
