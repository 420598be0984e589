import type { Clock } from '../../kernel/clock.ts';
import type { ClaimedOrder, DeliveryStore, Destination, LowWater } from './ports.ts';

/** Takes due orders of one destination from its two lanes, so that neither starves the other. */
export type Claimer = Readonly<{
  claim(limit: number): Promise<readonly ClaimedOrder[]>;
  probe(notId: bigint | null): Promise<ClaimedOrder | null>;
  /** One that may take the process down; looked for now and then only. */
  alone(): Promise<ClaimedOrder | null>;
}>;

type LaneName = 'free' | 'keyed';

type LaneState = {
  after: LowWater | null;
  resetAtMs: number;
  /** Was empty a moment ago: no need to look again while the other one is full. */
  isEmptyUntilMs: number;
};

const resetEveryMs = 1000;
const lookAloneEveryMs = 1000;
const emptyForMs = 50;

export function createClaimer(
  deps: Readonly<{ store: DeliveryStore; clock: Clock }>,
  destination: Destination,
): Claimer {
  const { store, clock } = deps;
  const { name, policy } = destination;
  const newLane = (): LaneState => ({ after: null, resetAtMs: 0, isEmptyUntilMs: 0 });
  const lanes: Readonly<Record<LaneName, LaneState>> = { free: newLane(), keyed: newLane() };
  let turn: LaneName = 'free';
  let lookAloneAtMs = 0;

  /**
   * While there is more than enough, the next claim begins where the last one ended: a transaction that runs long
   * elsewhere keeps every claimed row's old index entries alive, and each claim would step over all of them. Rows
   * that came in behind the mark are found when it is taken back, every second and whenever a lane seems empty.
   */
  const claimFrom = async (lane: LaneName, limit: number): Promise<readonly ClaimedOrder[]> => {
    const state = lanes[lane];
    const now = clock.monotonicMs();
    if (now >= state.resetAtMs) {
      state.after = null;
      state.resetAtMs = now + resetEveryMs;
    }
    const { after } = state;
    const claimed = await store.claim({ destination: name, lane, limit, retryMax: policy.retryMax, after });
    const isFull = claimed.orders.length === limit;
    state.after = isFull ? claimed.last : null;
    state.isEmptyUntilMs = claimed.last === null && after === null ? clock.monotonicMs() + emptyForMs : 0;
    return claimed.orders;
  };

  return {
    async claim(limit) {
      const first = turn;
      turn = turn === 'free' ? 'keyed' : 'free';
      const claimed: ClaimedOrder[] = [];
      for (const lane of [first, turn] as const) {
        const rest = limit - claimed.length;
        const isEmpty =
          lanes[lane].isEmptyUntilMs > clock.monotonicMs() && lanes[other(lane)].isEmptyUntilMs === 0;
        if (rest > 0 && !isEmpty) claimed.push(...(await claimFrom(lane, rest)));
      }
      return claimed;
    },

    probe: (notId) => store.claimProbe({ destination: name, notId }),

    async alone() {
      if (clock.monotonicMs() < lookAloneAtMs) return null;
      lookAloneAtMs = clock.monotonicMs() + lookAloneEveryMs;
      const { retryMax } = policy;
      const claimed = await store.claim({
        destination: name,
        lane: 'alone',
        limit: 1,
        retryMax,
        after: null,
      });
      return claimed.orders[0] ?? null;
    },
  };
}

function other(lane: LaneName): LaneName {
  return lane === 'free' ? 'keyed' : 'free';
}
