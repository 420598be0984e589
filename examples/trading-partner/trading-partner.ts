import { sleep as wait } from '../../src/kernel/clock.ts';
import type { Broker } from '../../src/platform/broker/port.ts';
import { chanceFrom } from '../orders-pipeline/chance.ts';
import type { Mistake } from './desk-orders.ts';
import { runDesk } from './desk.ts';
import { startPartner, type Partner, type PartnerOptions } from './partner.ts';
import { createRedriveClient } from './redrive-client.ts';

export type TradingPartner = Readonly<{
  /** Where its orders go and its book is shown. */
  url: string;
  /** What belongs under `outbox.destinations`, so that Redrive reaches it. */
  destinations: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Runs the desk, and the partner's breaks; resolves when the signal has ended both. The partner still answers. */
  run(options: TradingOptions): Promise<void>;
  close(): Promise<void>;
}>;

export type TradingOptions = Readonly<{
  /** Of the running system. */
  redriveUrl: string;
  /** Where the desk's topic is made. */
  broker: Broker;
  signal: AbortSignal;
  /** Runs with the same seed place the same orders. */
  seed: string;
  /** Told once, of an order that needs attention. */
  onMistake: (mistake: Mistake) => void;
  /** Told once, when the partner goes away for the first time. */
  onFirstOutage: (forMs: number) => void;
  /** Waits, but not beyond the signal. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}>;

const topic = 'orders.events.v1';
const partitions = 3;
const firstOutageAfterMs = 60_000;
const outageEveryMs = 240_000;
const outageMs = 15_000;

/**
 * A trading desk and its broker, who fails in every way that partners fail in:
 *
 * - 503, and nothing has happened: tried again;
 * - 500, or no answer at all, after it has done the order: tried again with the same key, and not done twice;
 * - 429 when too much comes at once: everything for it waits, and goes on more slowly;
 * - 400 for a symbol that it does not trade: dead, and a person decides;
 * - nobody there for some seconds: the circuit opens, and closes when it is back.
 *
 * Only the partner knows what has really happened, and its book says: each order once.
 */
export async function openTradingPartner(options: PartnerOptions = {}): Promise<TradingPartner> {
  const partner = await startPartner(options);
  return {
    url: partner.url,
    destinations: {
      broker: {
        type: 'http',
        url: partner.url,
        timeout_ms: 2000,
        body: 'order',
        idempotency: 'enforced',
        dedup_window: '1h',
        conflict: 'processed',
        status_url: `${partner.url}/{key}`,
        schema: 'order',
      },
      orders_topic: { type: 'kafka', topic },
    },
    run: (trading) => runTrading(partner, trading),
    close: partner.close,
  };
}

async function runTrading(partner: Partner, options: TradingOptions): Promise<void> {
  const { redriveUrl, broker, seed, onMistake, sleep = wait } = options;
  await broker.createTopic(topic, partitions);
  // Whichever part fails stops the other, and its error is what the run ends with.
  const failing = new AbortController();
  const signal = AbortSignal.any([options.signal, failing.signal]);
  const redrive = createRedriveClient(redriveUrl, signal);
  const parts = [
    runDesk({ redrive, chance: chanceFrom(seed), signal, sleep, onMistake }),
    takeBreaks(partner, { ...options, signal, sleep }),
  ];
  try {
    await Promise.all(parts);
  } finally {
    failing.abort();
    await Promise.allSettled(parts);
  }
}

async function takeBreaks(
  partner: Partner,
  { signal, sleep, onFirstOutage }: Required<Pick<TradingOptions, 'signal' | 'sleep' | 'onFirstOutage'>>,
): Promise<void> {
  await sleep(firstOutageAfterMs, signal);
  for (let outage = 1; !signal.aborted; outage += 1) {
    await partner.goAway();
    if (outage === 1) onFirstOutage(outageMs);
    await sleep(outageMs, signal);
    // Also where everything ends now: what is still under way gets an answer.
    await partner.comeBack();
    await sleep(outageEveryMs - outageMs, signal);
  }
}
