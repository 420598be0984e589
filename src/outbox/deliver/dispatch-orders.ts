import { sleep, type Clock } from '../../kernel/clock.ts';
import { hasTimeFor } from '../../kernel/lease.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { SoloGate } from '../../platform/work/solo-gate.ts';
import type { Semaphore } from '../../platform/work/semaphore.ts';
import { restAfterErrorMs } from '../../platform/work/work.ts';
import type { SendOutcome, Settlement } from '../domain/order.ts';
import type { Attempt, AttemptResult } from './attempt.ts';
import { checkFirstSend, checkResend, readSucceeded } from './check-order.ts';
import { blockOrders, claimOrders, claimProbe, type ClaimDeps, type ClaimedOrder } from './claim-orders.ts';
import type { DestinationGate } from './destination-gate.ts';
import { judgeOutcome } from './judge-outcome.ts';
import { bytesOf, createOrderClaimer, type OrderClaimer, type Room } from './order-claimer.ts';
import { createSendSlots, type SendSlots } from './send-slots.ts';
import type { OpenDestination } from './senders/port.ts';
import type { SettledOrder } from './settle-orders.ts';
import type { SettleQueue } from './settle-queue.ts';

/**
 * Delivers the orders of one destination: claim -> check -> send -> judge -> settle, from top to bottom of this file.
 * There is one dispatcher per destination, and each order is settled when its own answer arrives, so a slow answer
 * delays no other order.
 *
 *   queued  --claim-->  sending  --delivered-->                                sent
 *                                --failed, retries left-->                     failed, due after its backoff
 *                                --failed, no retries left-->                  dead
 *                                --rejected, or in doubt and unsafe to resend--> dead
 *                                --released unsent-->                          queued or failed, as before the claim
 *   failed  --due, claim-->      queued -> sending
 *   sending --lease expired-->   failed or dead, in doubt (the reaper)
 *   queued, failed --cancel-->   dead, cancelled
 *   dead    --skip, supersede--> dead, skipped or superseded
 *   dead, unresolved --its success becomes known late--> sent
 *
 * Whenever the ledger records that the effect has happened, the order becomes sent instead. A retry is counted when an
 * attempt ends in failure; the first send is not a retry, so a limit of 8 retries allows 9 sends.
 *
 * While the circuit is open, only the probe is claimed. An order that took its worker down and has one attempt left is
 * sent solo: while it is being sent, the process has no other order claimed.
 */
export type Dispatcher = Service &
  Readonly<{
    inFlight(): number;
    /** Ends a pause: something it waits for may have happened. */
    nudge(): void;
  }>;

export type DispatchDeps = ClaimDeps &
  Readonly<{
    db: Database;
    clock: Clock;
    queue: SettleQueue;
    gate: DestinationGate;
    /** Limits the parallel claims of the process. */
    claims: Semaphore;
    /** Shared by all destinations: a solo order waits for all of them. */
    solo: SoloGate;
    /** Resolves when there may be new orders for the destination, or after the time. */
    waitForWork: (ms: number, stopping: AbortSignal) => Promise<unknown>;
    /** The same while nothing is in flight: may take longer, but no longer than until the next order is due. */
    waitForDue: (ms: number, stopping: AbortSignal) => Promise<void>;
    batchSize: number;
    parallelism: number;
    idleSleepMs: number;
    onClaim: (count: number) => void;
    onSettled: (result: AttemptResult, settled: SettledOrder) => void;
    onError: (error: unknown) => void;
    /** The result of an attempt could not be stored. */
    onLost: (result: AttemptResult, error: unknown) => void;
  }>;

/** The state of a dispatcher. */
type Dispatch = {
  readonly deps: DispatchDeps;
  readonly destination: OpenDestination;
  readonly claimer: OrderClaimer;
  readonly slots: SendSlots;
  readonly stopping: AbortSignal;
  /** Aborted by a nudge; renewed with each round, so that a nudge during a round ends the pause after it. */
  nudged: AbortController;
  isMoreDue: boolean;
};

/** How long a round waits for a few more free slots, so that claims do not become small. */
const gatherMs = 5;
/** After a longer pause, the state of the destination is read again. */
const staleGateMs = 1000;
/** Limit for the requests of a destination in memory; a larger request is sent by itself. */
const maxBytesInFlight = 8 * 1024 * 1024;

export function createDispatcher(deps: DispatchDeps, destination: OpenDestination): Dispatcher {
  const stopping = new AbortController();
  const { name, policy } = destination;
  const d: Dispatch = {
    deps,
    destination,
    claimer: createOrderClaimer({
      clock: deps.clock,
      claim: (options) => claimOrders(deps, { ...options, destination: name, retryMax: policy.retryMax }),
      block: (orderingKeys) => blockOrders(deps.db, name, orderingKeys),
    }),
    slots: createSendSlots(),
    stopping: stopping.signal,
    nudged: new AbortController(),
    isMoreDue: false,
  };
  let running = Promise.resolve();
  return {
    name: `outbox ${name}`,
    inFlight: d.slots.count,
    nudge: () => d.nudged.abort(),
    async start() {
      running = run(d);
    },
    async stop(deadline) {
      stopping.abort();
      await running;
      await d.slots.allFreed(deadline);
      await deps.gate.flush();
    },
  };
}

async function run(d: Dispatch): Promise<void> {
  const beat = (): void => d.deps.worker.watch?.beat('outbox', `deliver ${d.destination.name}`);
  beat();
  while (!d.stopping.aborted) {
    try {
      await round(d);
      beat();
    } catch (error) {
      if (!d.stopping.aborted) d.deps.onError(error);
      await sleep(restAfterErrorMs, d.stopping);
    }
  }
}

/** Claims as many orders as there are free slots and tokens, and sends them; pauses if there is nothing to do. */
async function round(d: Dispatch): Promise<void> {
  const { deps, slots, destination } = d;
  d.nudged = new AbortController();
  if (deps.gate.isOpen()) return sendProbe(d);
  await sendSolo(d);
  const batch = Math.min(deps.batchSize, destination.maxInFlight);
  if (destination.maxInFlight - slots.count() < batch) await slots.someFreed(gatherMs, d.stopping);
  const room = destination.maxInFlight - slots.count();
  if (room <= 0 || slots.bytes() >= maxBytesInFlight) return slots.someFreed(deps.idleSleepMs, d.stopping);
  const permit = deps.gate.mayClaim(room);
  if (permit.limit === 0) return pause(d, sleep, permit.waitMs);
  const limits = claimLimits(permit.limit, batch, d.isMoreDue ? deps.parallelism : 1);
  const bytes = Math.ceil((maxBytesInFlight - slots.bytes()) / limits.length);
  const claims = await Promise.all(limits.map((limit) => claimBatch(d, { limit, bytes })));
  const count = claims.reduce((sum, claim) => sum + claim.count, 0);
  deps.gate.giveBack(permit, permit.limit - count);
  d.isMoreDue = claims.every(({ isMore }) => isMore);
  if (count > 0 || d.isMoreDue) return;
  // An order in flight may be due again soon after it fails.
  if (slots.count() > 0) return pause(d, deps.waitForWork, deps.idleSleepMs);
  const begin = deps.clock.monotonicMs();
  await pause(d, deps.waitForDue, deps.idleSleepMs);
  // While nothing was sent, another replica may have opened the circuit.
  if (deps.clock.monotonicMs() - begin > staleGateMs && !d.stopping.aborted) await deps.gate.refresh();
}

/** Waits until the time has passed or a nudge comes; returns at once if there was one since the round began. */
async function pause(
  { nudged, stopping }: Dispatch,
  wait: (ms: number, signal: AbortSignal) => Promise<unknown>,
  ms: number,
): Promise<void> {
  if (!nudged.signal.aborted) await wait(Math.max(1, ms), AbortSignal.any([nudged.signal, stopping]));
}

/** One limit per parallel claim: as many full batches as there is room for. */
function claimLimits(room: number, batch: number, maxClaims: number): readonly number[] {
  const count = Math.max(1, Math.min(maxClaims, Math.floor(room / batch)));
  return Array.from({ length: count }, () => Math.min(batch, room));
}

async function sendProbe(d: Dispatch): Promise<void> {
  const { deps, destination } = d;
  const probe = await deps.gate.takeProbe();
  if (probe === null) return pause(d, sleep, deps.gate.mayClaim(0).waitMs);
  const order = await claimProbe(deps, {
    destination: destination.name,
    notId: probe.lastProbeId,
    retryMax: destination.policy.retryMax,
  });
  if (order === null) return deps.gate.reportProbe(null, null);
  d.slots.take({ count: 1 });
  await deps.solo.together(() => deliver(d, [order], true));
}

async function sendSolo(d: Dispatch): Promise<void> {
  const { gate, solo } = d.deps;
  const permit = gate.mayClaim(1);
  const order = permit.limit === 0 ? null : await d.claimer.claimSolo();
  if (order === null) return gate.giveBack(permit, permit.limit);
  d.slots.take({ count: 1 });
  await solo.alone(() => deliver(d, [order]));
}

type ClaimCount = Readonly<{ count: number; isMore: boolean }>;

/**
 * Claims a batch and delivers it in the background. It counts as running from before the claim to the last answer, so
 * that no other order is claimed while a solo order is being sent.
 */
async function claimBatch(d: Dispatch, room: Room): Promise<ClaimCount> {
  const claimed = Promise.withResolvers<ClaimCount>();
  void d.deps.solo.together(async () => {
    if (d.stopping.aborted) return claimed.resolve({ count: 0, isMore: false });
    const deliveries: Promise<void>[] = [];
    await claim(d, room, (orders) => void deliveries.push(deliver(d, orders))).then(
      claimed.resolve,
      claimed.reject,
    );
    await Promise.all(deliveries);
  });
  return claimed.promise;
}

async function claim(
  { deps, slots, claimer }: Dispatch,
  room: Room,
  onClaimed: (orders: readonly ClaimedOrder[]) => void,
): Promise<ClaimCount> {
  let count = 0;
  slots.take({ count: room.limit });
  try {
    const isMore = await deps.claims.run(() =>
      claimer.claim(room, (orders) => {
        count += orders.length;
        if (orders.length > 0) onClaimed(orders);
      }),
    );
    return { count, isMore };
  } finally {
    slots.free({ count: room.limit - count });
    deps.onClaim(count);
  }
}

/** Delivers claimed orders; resolves when all of them are settled. */
async function deliver(d: Dispatch, orders: readonly ClaimedOrder[], isProbe = false): Promise<void> {
  d.deps.gate.started(orders.length);
  d.slots.take({ bytes: bytesOf(orders) });
  const attempts = orders.map((order): Attempt => ({
    order,
    destination: d.destination,
    clock: d.deps.clock,
    isProbe,
  }));
  let results: readonly Promise<AttemptResult>[];
  try {
    results = [
      ...makeFirstAttempts(
        d,
        attempts.filter(({ order }) => order.was.firstSentAt === null),
      ),
      ...retryAttempts(
        d,
        attempts.filter(({ order }) => order.was.firstSentAt !== null),
      ),
    ];
  } catch (error) {
    // A bug. It is unknown what was sent, so the leases expire.
    d.deps.onError(error);
    return d.slots.free({ count: orders.length, bytes: bytesOf(orders) });
  }
  await Promise.all(results.map((result) => settle(d, result, isProbe)));
}

/** Orders that were never sent go out together, so that a destination that takes batches gets batches. */
function makeFirstAttempts(d: Dispatch, attempts: readonly Attempt[]): readonly Promise<AttemptResult>[] {
  const checks = attempts.map((attempt) => ({ attempt, refusal: checkFirstSend(attempt) }));
  const outcomes = send(
    d,
    checks.filter(({ refusal }) => refusal === null).map(({ attempt }) => attempt.order),
  );
  return checks.map(
    async ({ attempt, refusal }) => refusal ?? judgeOutcome(attempt, await outcomes(attempt.order)),
  );
}

function retryAttempts(d: Dispatch, attempts: readonly Attempt[]): readonly Promise<AttemptResult>[] {
  if (attempts.length === 0) return [];
  const succeeded = readSucceeded(
    d.deps.db,
    attempts.map(({ order }) => order),
  );
  return attempts.map(async (attempt) => {
    const refusal = await checkResend(attempt, await succeeded);
    return refusal ?? judgeOutcome(attempt, await send(d, [attempt.order])(attempt.order));
  });
}

/** Sends orders whose lease lasts as long as the send may take, and releases the others. */
function send(
  { destination, deps, stopping }: Dispatch,
  orders: readonly ClaimedOrder[],
): (order: ClaimedOrder) => Promise<SendOutcome> {
  const inTime = orders.filter(({ lease }) => hasTimeFor(lease, destination.timeoutMs, deps.clock));
  const outcomes = inTime.length === 0 ? [] : destination.send(inTime, stopping);
  const byId = new Map(inTime.map(({ id }, i) => [id, outcomes[i]]));
  return async ({ id }) =>
    (await byId.get(id)) ?? { end: 'released', reason: 'not enough time left on the lease to send' };
}

/** Stores the result of an attempt. If that fails, the lease expires and the reaper takes the order. */
async function settle(d: Dispatch, attempt: Promise<AttemptResult>, isProbe: boolean): Promise<void> {
  const result = await attempt;
  const { order } = result;
  try {
    const settlement = await reportToGate(d, result, isProbe);
    const settled = await d.deps.queue.settle({ order, settlement });
    d.deps.onSettled(result, settled);
    if (order.orderingKey !== null && settled.status === 'sent') {
      // The next order of the key can be sent now.
      d.claimer.lookAgain();
      d.nudged.abort();
    }
  } catch (error) {
    d.deps.onLost(result, error);
  } finally {
    d.slots.free({ count: 1, bytes: bytesOf([order]) });
    // With nothing in flight, the dispatcher waits for the next due order instead of the poll interval.
    if (d.slots.count() === 0) d.nudged.abort();
  }
}

/**
 * Reports the outcome to throttle and circuit. An order that was refused for missing credentials after the circuit had
 * opened is released instead of dying.
 */
async function reportToGate(
  { deps: { gate } }: Dispatch,
  { order, outcome, settlement }: AttemptResult,
  isProbe: boolean,
): Promise<Settlement> {
  const wasOpen = gate.isOpen();
  if (isProbe) await gate.reportProbe(order.id, outcome);
  else if (outcome !== null) gate.report(order.id, outcome);
  const isUnauthorized = outcome?.end === 'refused' && outcome.code === 'UNAUTHORIZED';
  const waits = !isProbe && wasOpen && isUnauthorized;
  return waits ? { to: 'released', reason: 'the circuit is open', delayMs: 0 } : settlement;
}
