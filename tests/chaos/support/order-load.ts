import { sleep } from '../../../src/kernel/clock.ts';
import type { NewOrder, OutboxScene } from './outbox-scene.ts';

const betweenRoundsMs = 20;
const perRound = 20;
const lanes = 7;

/** Orders are placed until it is told to stop; every third one has to keep its place among those of its key. */
export function startOrderLoad(at: OutboxScene): Readonly<{ stop(): Promise<void> }> {
  const stopping = new AbortController();
  const run = async (): Promise<void> => {
    for (let round = 0; !stopping.signal.aborted; round += 1) {
      await at.place(ordersOf(round));
      await sleep(betweenRoundsMs, stopping.signal);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function ordersOf(round: number): readonly NewOrder[] {
  return Array.from({ length: perRound }, (_, i) => ({
    key: `round-${round}-order-${i}`,
    ...(i % 3 === 0 ? { orderingKey: `lane-${(round + i) % lanes}` } : {}),
  }));
}
