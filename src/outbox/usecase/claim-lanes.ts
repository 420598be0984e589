import type { Clock } from '../../kernel/clock.ts';
import type { ClaimedOrder, ClaimResult, DeliveryStore, Destination, LowWater } from './ports.ts';

/** Takes due orders of one destination from its two lanes, so that neither starves the other. */
export type Claimer = Readonly<{
  /**
   * Hands over what it claims, lane by lane: trouble with the second one costs the orders of the first nothing. Says
   * whether there may be more.
   */
  claim(limit: number, handOver: (orders: readonly ClaimedOrder[]) => void): Promise<boolean>;
  probe(notId: bigint | null): Promise<ClaimedOrder | null>;
  /** One that may take the process down; looked for now and then only. */
  alone(): Promise<ClaimedOrder | null>;
  /** The next one of a key may go now, though its lane was empty a moment ago. */
  lookAgain(): void;
}>;

type LaneName = 'free' | 'keyed';

type LaneState = {
  /** Where the last full claim ended. */
  after: LowWater | null;
  lookBackAtMs: number;
  /** How long the last claim from the beginning took. */
  lookBackMs: number;
  /** Was empty a moment ago: no need to look again while the other one is full. */
  isEmptyUntilMs: number;
};

const lookBackEveryMs = 1000;
/** So many times as long as a look back took, the next one waits. */
const lookBackRest = 20;
/** A look back that takes longer is not worth it for one or two orders. */
const dearLookBackMs = 100;
const lookAloneEveryMs = 1000;
const emptyForMs = 50;

export function createClaimer(
  deps: Readonly<{ store: Pick<DeliveryStore, 'claim' | 'claimProbe' | 'holdBack'>; clock: Clock }>,
  destination: Pick<Destination, 'name' | 'policy'>,
): Claimer {
  const { store, clock } = deps;
  const { name, policy } = destination;
  const newLane = (): LaneState => ({ after: null, lookBackAtMs: 0, lookBackMs: 0, isEmptyUntilMs: 0 });
  const lanes: Readonly<Record<LaneName, LaneState>> = { free: newLane(), keyed: newLane() };
  let turn: LaneName = 'free';
  let lookAloneAtMs = 0;

  /**
   * While there is more than enough, the next claim begins where the last one ended: a transaction that runs long
   * elsewhere keeps every claimed row's old index entries alive, and each claim would step over all of them. Rows
   * that came in behind the mark are found by looking back: one claim does so every second, and each one as soon as
   * the lane seems empty. Where it takes long it is done less often, but not for the keys: the next one of a key
   * stands behind the mark as a rule.
   */
  const claimFrom = async (lane: LaneName, limit: number): Promise<ClaimResult> => {
    const state = lanes[lane];
    const begin = clock.monotonicMs();
    const after = begin >= state.lookBackAtMs ? null : state.after;
    // The claims that run beside it go on from the mark.
    if (after === null) state.lookBackAtMs = begin + lookBackEveryMs;
    const claimed = await store.claim({ destination: name, lane, limit, retryMax: policy.retryMax, after });
    const end = clock.monotonicMs();
    if (after === null && lane === 'free') {
      state.lookBackMs = end - begin;
      state.lookBackAtMs = end + Math.max(lookBackEveryMs, lookBackRest * state.lookBackMs);
    }
    if (claimed.isFull) state.after = claimed.last;
    else if (state.lookBackMs < dearLookBackMs) state.after = null;
    state.isEmptyUntilMs = claimed.last === null && after === null ? end + emptyForMs : 0;
    return claimed;
  };

  return {
    async claim(limit, handOver) {
      const first = turn;
      turn = turn === 'free' ? 'keyed' : 'free';
      let rest = limit;
      let isMore = false;
      const crowded: string[] = [];
      for (const lane of [first, turn] as const) {
        const isEmpty =
          lanes[lane].isEmptyUntilMs > clock.monotonicMs() && lanes[other(lane)].isEmptyUntilMs === 0;
        if (rest <= 0 || isEmpty) continue;
        const claimed = await claimFrom(lane, rest);
        handOver(claimed.orders);
        rest -= claimed.orders.length;
        isMore ||= claimed.isFull;
        crowded.push(...claimed.crowded);
      }
      if (crowded.length > 0) await store.holdBack(name, crowded);
      return isMore;
    },

    probe: (notId) => store.claimProbe({ destination: name, notId }),

    async alone() {
      if (clock.monotonicMs() < lookAloneAtMs) return null;
      const { retryMax } = policy;
      const { orders } = await store.claim({
        destination: name,
        lane: 'alone',
        limit: 1,
        retryMax,
        after: null,
      });
      // Where there is one there are more: those who were under way beside it when the process went down.
      if (orders.length === 0) lookAloneAtMs = clock.monotonicMs() + lookAloneEveryMs;
      return orders[0] ?? null;
    },

    lookAgain: () => void (lanes.keyed.isEmptyUntilMs = 0),
  };
}

function other(lane: LaneName): LaneName {
  return lane === 'free' ? 'keyed' : 'free';
}
