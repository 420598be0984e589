import { sleep } from '../../../kernel/clock.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { allowance, changeRate, spend, startPace, waitMs, type Pace } from '../../domain/pace.ts';
import { isUnsendable } from '../../domain/redrive-item.ts';
import type { ClaimedBatch, ClaimedMessage } from '../claim-messages.ts';
import { createKeyOrder } from '../key-order.ts';
import {
  isOutage,
  outcomesOf,
  publishClaimed,
  type Published,
  type PublishedById,
} from '../publish-claimed.ts';
import type { RetryDeps } from '../retry-message.ts';
import { createCanaryRun, noteWaiting, type CanaryRun } from '../canary/run-canary.ts';
import type { ConfirmDeps } from '../canary/confirm-stage.ts';
import { claimItems, type ClaimedItems, type ClaimResult } from './claim-items.ts';
import { finishRedrive, stopRedrive } from './end-redrive.ts';
import { createHeldItems, type HeldItems } from './held-items.ts';
import { createReleaseLimit, type ReleaseLimit } from './release-limit.ts';
import { isInFlight, readRate, type LeasedRedrive } from './redrives-table.ts';
import { endLostItems, settleItems, type Unsendable } from './settle-items.ts';
import { createTargetBackoff, type TargetBackoff } from './target-backoff.ts';

export type RunDeps = RetryDeps &
  Readonly<{
    db: Database;
    /** How long a target may accept nothing before the redrive stops. */
    outageMs: number;
    /** Null without a broker. */
    broker: ConfirmDeps['broker'];
  }>;

/**
 * Runs a redrive while this process holds its lease: rounds of claim -> publish -> settle, in the order of the items.
 * It returns when the redrive has ended, was paused or cancelled, or has another owner. Every round runs inside the
 * gate, like other retries. A process that takes over leaves alone what its predecessor had in flight, and the keys of
 * those messages, until their leases have expired.
 */
export async function runRedrive(deps: RunDeps, redrive: LeasedRedrive, leased: AbortSignal): Promise<void> {
  const run = await startRun(deps, redrive);
  while (!leased.aborted) {
    const next = await runRound(deps, run, leased);
    if (next === 'ended') return;
    if (next > 0) await sleep(Math.min(next, maxRestMs), leased);
  }
}

/** Between two rounds; a change of state is noticed after at most this time. */
const maxRestMs = 500;
/** Before a batch that could not be sent is tried again in part. */
const releasedRestMs = 100;

type Run = {
  readonly redrive: LeasedRedrive;
  readonly held: HeldItems;
  readonly backoff: TargetBackoff;
  readonly releases: ReleaseLimit;
  readonly canary: CanaryRun;
  /** In flight in a process that is gone: position -> key. */
  foreign: Map<number, string | null>;
  pace: Pace;
  /** The targets that are shown as waited for. */
  outage: string;
  after: number;
  /** The lowest position that was released, or left waiting, in this pass. */
  again: number | null;
  /** The lowest position whose message could not be loaded in the last batch, or not in time. */
  unready: number | null;
};

async function startRun(deps: RunDeps, redrive: LeasedRedrive): Promise<Run> {
  const { db, worker, outageMs } = deps;
  const nowMs = worker.clock.monotonicMs;
  const rows = await db.query<{ position: number; orderKey: string | null }>(sql`
    SELECT i.position, i.target || ' ' || encode(i.key_hash, 'hex') AS "orderKey" FROM dlq.redrive_items i
    WHERE i.redrive_id = ${redrive.id} AND ${isInFlight}`);
  return {
    redrive,
    held: createHeldItems(),
    backoff: createTargetBackoff(() => nowMs(), { giveUpAfterMs: outageMs }),
    releases: createReleaseLimit(),
    canary: createCanaryRun({ ...deps, clock: worker.clock }, redrive),
    foreign: new Map(rows.map(({ position, orderKey }) => [position, orderKey])),
    pace: startPace(redrive.options.rate_per_second, nowMs()),
    outage: '',
    after: 0,
    again: null,
    unready: null,
  };
}

/** Returns how long to rest before the next round. */
async function runRound(deps: RunDeps, run: Run, leased: AbortSignal): Promise<number | 'ended'> {
  const nowMs = deps.worker.clock.monotonicMs();
  const outage = run.backoff.expired();
  if (outage !== null) {
    const reason = `${outage.target} accepts no messages: ${outage.error}`;
    await stopRedrive(deps.db, run.redrive, { by: 'outage', reason });
    return 'ended';
  }
  if (await run.canary.hasStopped()) return 'ended';
  await dropLost(deps, run);
  await showOutage(deps, run);
  run.after = Math.min(run.after, (run.backoff.takeReady() ?? Infinity) - 1);
  run.pace = changeRate(run.pace, await readRate(deps.db, run.redrive.id), nowMs);
  const allowed = allowance(run.pace, nowMs);
  if (allowed === 0) return waitMs(run.pace, nowMs);
  const limit = Math.min(allowed, run.releases.batchSize());

  let claimed = await deps.gate.together(() => work(deps, run, { limit, mayRunAlone: false }));
  if (claimed.result === 'claimed' && claimed.items.isAloneNext && claimed.items.claim.length === 0)
    claimed = await deps.gate.alone(() => work(deps, run, { limit: 1, mayRunAlone: true }));
  switch (claimed.result) {
    case 'not_running':
      return 'ended';
    case 'locked':
      run.held.hold(claimed.candidates);
      return 0;
    case 'claimed':
      run.pace = spend(run.pace, claimed.items.claim.length, nowMs);
      if (run.unready !== null) return takeBack(run, run.unready);
      return claimed.items.isAtEnd ? endPass(deps, run, leased) : 0;
  }
}

/** Continues with what could not be loaded, or not in time, in a smaller batch. */
function takeBack(run: Run, from: number): number {
  run.after = Math.min(run.after, from - 1);
  run.unready = null;
  return releasedRestMs;
}

/** Names the targets that accept nothing now. */
async function showOutage({ db }: RunDeps, run: Run): Promise<void> {
  const targets = run.backoff.waiting().join(', ');
  if (targets === run.outage) return;
  await noteWaiting(db, run.redrive, targets === '' ? null : `accepts no messages: ${targets}`);
  run.outage = targets;
}

/** claim -> publish -> settle */
async function work(
  deps: RunDeps,
  run: Run,
  { limit, mayRunAlone }: Readonly<{ limit: number; mayRunAlone: boolean }>,
): Promise<ClaimResult> {
  const { redrive, backoff, held } = run;
  const foreignKeys = new Set([...run.foreign.values()].filter((key) => key !== null));
  const claimed = await claimItems(deps, redrive, {
    after: run.after,
    limit,
    held: held.now(foreignKeys),
    withoutTargets: backoff.waiting(),
    mayRunAlone,
  });
  if (claimed.result !== 'claimed') return claimed;
  const { items } = claimed;
  run.after = items.last;
  for (const { position } of items.waiting) tryAgain(run, position);
  if (items.claim.length > 0) await publishItems(deps, run, items);
  return claimed;
}

async function publishItems(deps: RunDeps, run: Run, { batch, claim }: ClaimedItems): Promise<void> {
  const { redrive } = run;
  const hasOrder = redrive.options.order === 'key' && deps.republishKey === 'original';
  const published = await publishClaimed(deps, batch, hasOrder ? createKeyOrder() : null);
  const { actor } = redrive;
  const unsendable = unsendableOf(published, givenUpOf(run, batch, published));
  await settleItems(deps, redrive, {
    lease: batch.lease,
    outcomes: outcomesOf(published),
    actor,
    unsendable,
  });

  const places = new Map(claim.map((candidate) => [candidate.messageId, candidate]));
  for (const message of batch.messages) {
    const candidate = places.get(message.id);
    if (candidate === undefined) continue;
    const one = published.get(message.id);
    // Taken over before it was sent; the other process ends the attempt.
    if (one === undefined) run.foreign.set(candidate.position, candidate.orderKey);
    else note(deps, run, { message, position: candidate.position, one, isOver: unsendable.has(message.id) });
  }
}

/** Since the plan it has become impossible to send them; they would be claimed and released for ever. */
function unsendableOf(published: PublishedById, givenUp: ReadonlySet<string>): Unsendable {
  return new Map(
    [...published].flatMap(([id, { release, outcome }]) =>
      release !== null && (isUnsendable(release) || givenUp.has(id)) && outcome.end === 'released'
        ? [[id, outcome.reason] as const]
        : [],
    ),
  );
}

const isUnready = ({ release }: Published): boolean => release === 'not_loaded' || release === 'no_time';

/** Messages that were released too often because they could not be loaded, or not in time. */
function givenUpOf(run: Run, { messages }: ClaimedBatch, published: PublishedById): ReadonlySet<string> {
  const unready = [...published].filter(([, one]) => isUnready(one)).map(([id]) => id);
  return run.releases.note(
    messages.map(({ id }) => id),
    new Set(unready),
  );
}

type Noted = Readonly<{ message: ClaimedMessage; position: number; one: Published; isOver: boolean }>;

function note(deps: RunDeps, run: Run, { message, position, one, isOver }: Noted): void {
  const { outcome, result, release } = one;
  deps.onAttempt(outcome.end);
  if (outcome.end === 'released' && !isOver) {
    if (isUnready(one)) run.unready = Math.min(run.unready ?? position, position);
    else tryAgain(run, position);
  }
  if (outcome.end === 'published') run.backoff.succeed(message.targetTopic);
  const isTargetDown = release === 'cluster' || release === 'target' || isOutage(result);
  if (!isTargetDown || run.backoff.waiting().includes(message.targetTopic)) return;
  const error = result !== null && 'code' in result ? `${result.code}: ${result.message}` : 'no answer';
  run.backoff.fail(message.targetTopic, position, error);
}

function tryAgain(run: Run, position: number): void {
  run.again = Math.min(run.again ?? position, position);
}

async function dropLost({ db }: RunDeps, run: Run): Promise<void> {
  if (run.foreign.size === 0) return;
  const left = await endLostItems(db, run.redrive.id, [...run.foreign.keys()]);
  run.foreign = new Map([...run.foreign].filter(([position]) => left.has(position)));
}

/** The last item was reached: starts again with those that were left waiting, lets the canary go on, or finishes. */
async function endPass(deps: RunDeps, run: Run, leased: AbortSignal): Promise<number | 'ended'> {
  const from = [run.again, run.held.startPass()].filter((position) => position !== null);
  run.again = null;
  if (from.length > 0) {
    run.after = Math.min(run.after, ...from.map((position) => position - 1));
    return maxRestMs;
  }
  if (run.foreign.size > 0 || run.backoff.waiting().length > 0) return maxRestMs;
  const next = await run.canary.next(leased);
  if (next === 'ended') return 'ended';
  if (next === 'finish' && (await finishRedrive(deps.db, run.redrive))) return 'ended';
  if (next === 'finish' || next.isNewPass) run.after = 0;
  return next === 'finish' ? maxRestMs : next.restMs;
}
