import { onceAborted, sleep } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import type { SoloGate } from '../../kernel/solo-gate.ts';
import type { Turns } from '../../kernel/turns.ts';
import type { SendOutcome } from '../domain/order.ts';
import { createClaimer } from './claim-lanes.ts';
import type { DestinationGate } from './destination-gate.ts';
import type { ClaimedOrder, Destination, SettledAttempt } from './ports.ts';
import { sendClaimed, type SendDeps, type Sent } from './send-claimed.ts';
import type { SettleQueue } from './settle-queue.ts';

export type DispatchDeps = SendDeps &
  Readonly<{
    queue: SettleQueue;
    gate: DestinationGate;
    /** How many claims the process makes at once. */
    turns: Turns;
    /** Of all destinations together: what has to run alone waits for all of them. */
    solo: SoloGate;
    /** Until there may be something to do for this destination. */
    waitForWork: (ms: number, stopping: AbortSignal) => Promise<void>;
    batchSize: number;
    parallelism: number;
    idleSleepMs: number;
    onClaim: (count: number) => void;
    onSettled: (sent: Sent, settled: SettledAttempt) => void;
    onError: (error: unknown) => void;
    /** An attempt has ended that could not be written down: how it ended stands nowhere else. */
    onLost: (sent: Sent, error: unknown) => void;
  }>;

/** How long it waits for a few more slots to be free, so that claims are not small without need. */
const gatherMs = 5;
const retryAfterErrorMs = 500;

export type Dispatcher = Service &
  Readonly<{
    inFlight(): number;
    /** What it waits for may have come. */
    nudge(): void;
  }>;

/**
 * Keeps one destination supplied: claims what is due as long as there is room, sends it at once and settles each
 * order when its answer is there. A slow answer takes up its own slot and nothing else; another destination has its
 * own dispatcher. While the circuit is open nothing is claimed but the probe.
 */
export function createDispatcher(deps: DispatchDeps, destination: Destination): Dispatcher {
  const stopping = new AbortController();
  const { signal } = stopping;
  const claimer = createClaimer(deps, destination);
  let inFlight = 0;
  let isMoreDue = false;
  let running = Promise.resolve();
  let onFree = (): void => {};
  let nudged = new AbortController();

  /** Until there may be something to do, or somebody says so, or has said so since the round began. */
  const pause = async (ms: number): Promise<void> => {
    if (nudged.signal.aborted) return;
    await deps.waitForWork(Math.max(1, ms), AbortSignal.any([nudged.signal, signal]));
  };

  /** The same where new work changes nothing: the gate is shut. */
  const rest = async (ms: number): Promise<void> => {
    if (nudged.signal.aborted) return;
    await sleep(Math.max(1, ms), AbortSignal.any([nudged.signal, signal]));
  };

  const isBusy = (): boolean => inFlight > 0;

  const lookAgain = (): void => {
    claimer.lookAgain();
    nudged.abort();
  };

  const leave = (count: number): void => {
    inFlight -= count;
    onFree();
  };

  /** Resolves when something has ended, or after the time. */
  const someEnd = async (ms: number): Promise<void> => {
    const done = new AbortController();
    onFree = () => done.abort();
    await sleep(ms, AbortSignal.any([done.signal, signal]));
    onFree = () => {};
  };

  const finish = async (sending: Promise<Sent>, isProbe: boolean): Promise<void> => {
    const sent = await sending;
    try {
      const { order, outcome } = sent;
      const wasOpen = deps.gate.isOpen();
      if (isProbe) await deps.gate.reportProbe(order.id, outcome);
      else if (outcome !== null) deps.gate.report(order.id, outcome);
      const settlement = !isProbe && wasOpen && isTurnedAway(outcome) ? waitForCircuit : sent.settlement;
      const settled = await deps.queue.settle({ order, settlement });
      deps.onSettled(sent, settled);
      // The next one of its key waits for nothing else.
      if (order.orderingKey !== null && settled.status === 'sent') lookAgain();
    } catch (error) {
      // Its lease runs out, and the reaper ends it.
      deps.onLost(sent, error);
    } finally {
      leave(1);
    }
  };

  const send = async (orders: readonly ClaimedOrder[], isProbe = false): Promise<void> => {
    deps.gate.started(orders.length);
    let sendings: readonly Promise<Sent>[];
    try {
      sendings = sendClaimed(deps, destination, orders, { stopping: signal, isProbe });
    } catch (error) {
      // A fault of ours. Nobody knows what has left: their leases run out.
      deps.onError(error);
      return leave(orders.length);
    }
    await Promise.all(sendings.map((sending) => finish(sending, isProbe)));
  };

  const probe = async (): Promise<void> => {
    const turn = await deps.gate.takeProbe();
    if (turn === null) return rest(deps.gate.mayClaim(0).waitMs);
    const order = await claimer.probe(turn.lastProbeId);
    if (order === null) return deps.gate.reportProbe(null, null);
    inFlight += 1;
    await deps.solo.together(() => send([order], true));
  };

  const runAlone = async (): Promise<void> => {
    const permit = deps.gate.mayClaim(1);
    const order = permit.limit === 0 ? null : await claimer.alone();
    if (order === null) return deps.gate.giveBack(permit, permit.limit);
    inFlight += 1;
    await deps.solo.alone(() => send([order]));
  };

  const claimBatch = async (
    limit: number,
    handOver: (orders: readonly ClaimedOrder[]) => void,
  ): Promise<Claimed> => {
    let count = 0;
    const countAndHandOver = (orders: readonly ClaimedOrder[]): void => {
      count += orders.length;
      if (orders.length > 0) handOver(orders);
    };
    inFlight += limit;
    try {
      const isMore = await deps.turns.take(() => claimer.claim(limit, countAndHandOver));
      return { count, isMore };
    } finally {
      leave(limit - count);
      deps.onClaim(count);
    }
  };

  /** Counts as under way from before the claim to the last answer: what runs alone has no claimed neighbours. */
  const claimAndSend = async (limit: number): Promise<Claimed> => {
    const claimed = Promise.withResolvers<Claimed>();
    void deps.solo.together(async () => {
      if (signal.aborted) return claimed.resolve({ count: 0, isMore: false });
      const sends: Promise<void>[] = [];
      await claimBatch(limit, (orders) => void sends.push(send(orders))).then(
        claimed.resolve,
        claimed.reject,
      );
      await Promise.all(sends);
    });
    return claimed.promise;
  };

  const round = async (): Promise<void> => {
    nudged = new AbortController();
    if (deps.gate.isOpen()) return probe();
    await runAlone();
    const full = Math.min(deps.batchSize, destination.maxInFlight);
    if (destination.maxInFlight - inFlight < full) await someEnd(gatherMs);
    const room = destination.maxInFlight - inFlight;
    if (room <= 0) return someEnd(deps.idleSleepMs);
    const permit = deps.gate.mayClaim(room);
    if (permit.limit === 0) return rest(permit.waitMs);
    const limits = sharesOf(permit.limit, full, isMoreDue ? deps.parallelism : 1);
    const claims = await Promise.all(limits.map(claimAndSend));
    const got = claims.reduce((sum, { count }) => sum + count, 0);
    deps.gate.giveBack(permit, permit.limit - got);
    isMoreDue = claims.every(({ isMore }) => isMore);
    if (got === 0 && !isMoreDue) await pause(deps.idleSleepMs);
  };

  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await round();
      } catch (error) {
        if (!signal.aborted) deps.onError(error);
        await sleep(retryAfterErrorMs, signal);
      }
    }
  };

  return {
    name: `outbox ${destination.name}`,
    inFlight: () => inFlight,
    nudge: () => nudged.abort(),
    async start() {
      running = run();
    },
    async stop(deadline) {
      stopping.abort();
      await running;
      while (isBusy() && !deadline.aborted) {
        const ended = Promise.withResolvers<void>();
        onFree = ended.resolve;
        await Promise.race([ended.promise, onceAborted(deadline)]);
      }
      await deps.gate.flush();
    },
  };
}

type Claimed = Readonly<{ count: number; isMore: boolean }>;

/** One limit per claim: full ones as far as the room goes. */
function sharesOf(room: number, full: number, claims: number): readonly number[] {
  const count = Math.max(1, Math.min(claims, Math.floor(room / full)));
  return Array.from({ length: count }, () => Math.min(full, room));
}

/** After the circuit has opened, who is turned away for want of credentials waits instead of dying. */
function isTurnedAway(outcome: SendOutcome | null): boolean {
  return outcome?.end === 'refused' && outcome.code === 'UNAUTHORIZED';
}

const waitForCircuit = {
  to: 'released',
  reason: 'the circuit of its destination is open',
  delayMs: 0,
} as const;
