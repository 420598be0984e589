import type { Chance } from '../orders-pipeline/chance.ts';
import { hastyAccount, mistakeIn, ordersOfTurn, type DeskOrder, type Mistake } from './desk-orders.ts';
import type { RedriveClient } from './redrive-client.ts';

export type DeskOptions = Readonly<{
  redrive: RedriveClient;
  chance: Chance;
  signal: AbortSignal;
  sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Told once, of an order that needs attention. */
  onMistake: (mistake: Mistake) => void;
}>;

/** What the desk has seen of its earlier orders, at every fifth turn. */
type View = Readonly<{ mayMistype: boolean; isHastyHeld: boolean; isJammed: boolean }>;

const turnMs = 1000;
/** Whoever looks at the demo looks in its first ten minutes; after that it need not fill the disk. */
const turnsInHaste = 600;
const slowTurnMs = 10_000;
/** Nobody has to decide about more than so many orders, and no more than so many wait. */
const maxNeedingPerson = 10;
const maxWaiting = 100;

/** A small trading desk: places order after order with Redrive, and leaves it to Redrive that they arrive. */
export async function runDesk(options: DeskOptions): Promise<void> {
  const { redrive, chance, signal, sleep } = options;
  const run = Math.floor(chance('run') * 0x1000000)
    .toString(16)
    .padStart(6, '0');
  /** With the same key until it is taken: so it is one order, however often it is placed. */
  const place = async (order: DeskOrder): Promise<void> => {
    while (!signal.aborted && (await redrive.place(order)) === 'later') await sleep(turnMs, signal);
  };
  const onMistake = once(options.onMistake);
  let view: View = { mayMistype: false, isHastyHeld: true, isJammed: false };
  for (let number = 1; !signal.aborted; number += 1) {
    if (number % 5 === 4) view = (await lookAround(redrive, onMistake)) ?? view;
    if (!view.isJammed) await Promise.all(ordersOfTurn({ number, run, chance, ...view }).map(place));
    await sleep(number < turnsInHaste ? turnMs : slowTurnMs, signal);
  }
}

/** Undefined where Redrive does not answer now. */
async function lookAround(
  redrive: RedriveClient,
  onMistake: (mistake: Mistake) => void,
): Promise<View | undefined> {
  try {
    const [stuck, waiting] = await Promise.all([redrive.needingPerson(), redrive.waiting()]);
    const mistakes = stuck.orders.map(mistakeIn).filter((mistake) => mistake !== null);
    // One that holds others back shows most.
    const telling = mistakes.find(({ account }) => account !== null) ?? mistakes[0];
    if (telling !== undefined) onMistake(telling);
    return {
      mayMistype: stuck.count < maxNeedingPerson,
      isHastyHeld: stuck.orders.some((order) => order.ordering_key === hastyAccount),
      isJammed: waiting >= maxWaiting,
    };
  } catch {
    return undefined;
  }
}

function once<T>(listener: (value: T) => void): (value: T) => void {
  let wasTold = false;
  return (value) => {
    if (wasTold) return;
    wasTold = true;
    listener(value);
  };
}
