import { readFile } from 'node:fs/promises';
import { sleep as wait } from '../../src/kernel/clock.ts';
import { chanceFrom } from '../orders-pipeline/chance.ts';
import { startFulfilmentServices } from './fulfilment-services.ts';
import { kindOfNumber, writeOrder } from './orders.ts';
import { createRedriveClient, type RedriveClient, type SagaView } from './redrive-client.ts';

export type Fulfilment = Readonly<{
  /** What belongs under `services`, so that Redrive knows whom its workflow calls. */
  services: Readonly<Record<string, unknown>>;
  /** Runs the shop; resolves when the signal has ended it. The services still answer. */
  run(options: FulfilmentOptions): Promise<void>;
  close(): Promise<void>;
}>;

export type FulfilmentOptions = Readonly<{
  /** Of the running system. */
  redriveUrl: string;
  signal: AbortSignal;
  /** Runs with the same seed write the same orders. */
  seed: string;
  /** Told once, of a saga that needs attention. */
  onStuck: (sagaId: string) => void;
  /** Waits, but not beyond the signal. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}>;

const workflow = 'fulfil-order';
const workflowFile = new URL('fulfil-order.yaml', import.meta.url);

export const turnMs = 2000;
/** Whoever looks at the demo looks in its first ten minutes; after that it need not fill the disk. */
const turnsInHaste = 300;
const slowTurnMs = 20_000;
/** Nobody has to decide about more sagas than this. */
const maxNeedingPerson = 3;

/**
 * A shop that fulfils orders with three services: a reservation, a charge and a shipment. Each of them may fail, and
 * none knows of the others; Redrive sees to it that all is done, or all is undone, or a person is told.
 */
export async function openFulfilment(): Promise<Fulfilment> {
  const { services, close } = await startFulfilmentServices();
  return { services, run: runShop, close };
}

async function runShop({
  redriveUrl,
  signal,
  seed,
  onStuck,
  sleep = wait,
}: FulfilmentOptions): Promise<void> {
  const redrive = createRedriveClient(redriveUrl, workflow, signal);
  const chance = chanceFrom(seed);
  const run = Math.floor(chance('run') * 0x1000000)
    .toString(16)
    .padStart(6, '0');
  const untilTaken = async (ask: () => Promise<'taken' | 'later'>): Promise<void> => {
    while (!signal.aborted && (await ask()) === 'later') await sleep(turnMs, signal);
  };
  const yaml = await readFile(workflowFile, 'utf8');
  await untilTaken(() => redrive.register(yaml));

  let view: SagaView = { needingPerson: 0, stuckSagaId: null };
  let wasTold = false;
  for (let number = 1; !signal.aborted; number += 1) {
    view = await lookAgain(redrive, view);
    if (view.stuckSagaId !== null && !wasTold) {
      wasTold = true;
      onStuck(view.stuckSagaId);
    }
    const wanted = kindOfNumber(number);
    const kind = wanted === 'closed-card' && view.needingPerson >= maxNeedingPerson ? 'plain' : wanted;
    const order = writeOrder({ run, number, kind, chance });
    await untilTaken(() => redrive.start(order));
    await sleep(number < turnsInHaste ? turnMs : slowTurnMs, signal);
  }
}

async function lookAgain(redrive: RedriveClient, before: SagaView): Promise<SagaView> {
  return redrive.look().catch(() => before);
}
