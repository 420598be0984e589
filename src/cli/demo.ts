import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { System } from '../compose.ts';
import type { Config } from '../config.ts';
import type { Broker } from '../platform/broker/port.ts';

/** What `redrive dev` runs so that there is something to look at, and what it says about it. */
export type Demo = Readonly<{ says: string; toTry: readonly Hint[]; stop(): Promise<void> }>;

export type Hint = readonly [what: string, command: string];

export type DemoOptions = Readonly<{
  config: Config;
  system: System;
  print: (text: string) => void;
  /** The command line as it is typed here, for this server. */
  cli: (words: string) => string;
}>;

/** The examples are part of a clone, not of the published package. */
const shopModule = new URL('../../examples/orders-pipeline/orders-pipeline.ts', import.meta.url);
const tradingModule = new URL('../../examples/trading-partner/trading-partner.ts', import.meta.url);
const summarizerModule = new URL('../../examples/summarizer/summarizer.ts', import.meta.url);
const fulfilmentModule = new URL('../../examples/fulfilment/fulfilment.ts', import.meta.url);

type ShopModule = Readonly<{
  runOrdersPipeline(
    options: Readonly<{ broker: Broker; signal: AbortSignal; seed: string; onBugFixed: () => void }>,
  ): Promise<void>;
}>;

type TradingModule = Readonly<{
  openTradingPartner(options: Readonly<{ bookFile: string }>): Promise<TradingPartner>;
}>;

export type TradingPartner = Readonly<{
  url: string;
  destinations: Readonly<Record<string, unknown>>;
  run(
    options: Readonly<{
      redriveUrl: string;
      broker: Broker;
      signal: AbortSignal;
      seed: string;
      onMistake: (mistake: Mistake) => void;
      onFirstOutage: (forMs: number) => void;
    }>,
  ): Promise<void>;
  close(): Promise<void>;
}>;

type Mistake = Readonly<{ id: number; symbol: string; account: string | null; corrected: unknown }>;

type SummarizerModule = Readonly<{ openSummarizer(): Promise<Summarizer> }>;

export type Summarizer = Readonly<{
  queues: Readonly<Record<string, unknown>>;
  run(
    options: Readonly<{
      redriveUrl: string;
      signal: AbortSignal;
      seed: string;
      onDead: (jobId: string) => void;
      onLearned: () => void;
    }>,
  ): Promise<void>;
  close(): Promise<void>;
}>;

type FulfilmentModule = Readonly<{ openFulfilment(): Promise<Fulfilment> }>;

export type Fulfilment = Readonly<{
  services: Readonly<Record<string, unknown>>;
  run(
    options: Readonly<{
      redriveUrl: string;
      signal: AbortSignal;
      seed: string;
      onStuck: (sagaId: string) => void;
    }>,
  ): Promise<void>;
  close(): Promise<void>;
}>;

export function withoutDemo(says: string, { system, cli }: DemoOptions): Demo {
  return {
    says,
    toTry: [
      ['what failed, by topic', cli('dlq topics')],
      ['each message, and why', `curl ${system.url}/api/v1/dlq/messages`],
    ],
    stop: async () => {},
  };
}

/** Dead letters. Only ever on the local broker: what arrives at a real one is read by others. */
export async function startShop(options: DemoOptions): Promise<Demo> {
  const { config, system, print, cli } = options;
  const { broker } = system;
  if (broker === null || !config.kafka.local)
    return withoutDemo('No demo traffic: it runs on the local broker only.', options);
  if (!existsSync(shopModule))
    return withoutDemo('No demo traffic: this package was installed without its examples.', options);
  const { runOrdersPipeline } = (await import(shopModule.href)) as ShopModule;
  return {
    says: 'A demo shop is running; some of its orders and payments fail and become dead letters.',
    toTry: [
      ['what failed, by topic', cli('dlq topics')],
      ['each message, and why', `curl ${system.url}/api/v1/dlq/orders.v1`],
      ['try them all again', cli('dlq retry-all orders.v1')],
    ],
    stop: runInBackground(system, (signal) =>
      runOrdersPipeline({
        broker,
        signal,
        seed: randomUUID(),
        onBugFixed: () =>
          print('The bug in the demo shop is fixed: retry its gift card orders, they go through now.'),
      }),
    ),
  };
}

/**
 * The other side of the outbox has to be there before the system starts, because the configuration names it. Only
 * for a database of our own: from one that others use, their processes would take demo orders to a real broker.
 */
export async function openTradingPartner(config: Config): Promise<TradingPartner | null> {
  const { database, kafka, outbox, roles } = config;
  const isOurs = database.mode === 'embedded' && kafka.local && outbox.destinations.length === 0;
  const isWhole = roles.includes('api') && roles.includes('workers');
  if (!isOurs || !isWhole || !existsSync(tradingModule)) return null;
  const { openTradingPartner: open } = (await import(tradingModule.href)) as TradingModule;
  // Beside the database: whoever deletes that folder starts afresh, on both sides.
  return open({ bookFile: join(database.dataDir, 'demo-broker.jsonl') });
}

/** Orders to the outside. */
export function startTrading(partner: TradingPartner, broker: Broker, options: DemoOptions): Demo {
  const { system, print, cli } = options;
  return {
    says: 'A demo trading desk is running; its broker fails in many ways, yet does each order once.',
    toTry: [
      ['its orders, newest first', cli('outbox list')],
      ['what needs a person', cli('outbox list --needs-person')],
      ['what waits, and for whom', cli('outbox destinations')],
      ["the broker's own book", `curl ${partner.url}`],
    ],
    stop: runInBackground(system, (signal) =>
      partner.run({
        redriveUrl: system.url,
        broker,
        signal,
        seed: randomUUID(),
        onMistake: (mistake) => print(aboutMistake(mistake, cli)),
        onFirstOutage: (forMs) =>
          print(
            `The demo broker is away for ${forMs / 1000} seconds: its circuit opens and closes.\n` +
              hintLine(['see it', cli('outbox destinations')]),
          ),
      }),
    ),
  };
}

function aboutMistake({ id, symbol, account, corrected }: Mistake, cli: DemoOptions['cli']): string {
  const behind = account === null ? '' : ` and holds back the orders of ${account} behind it`;
  const request = JSON.stringify(corrected);
  return [
    `Order ${id} needs a person: the demo broker does not trade ${symbol}. It is dead${behind}.`,
    hintLine(['see what happened', cli(`outbox show ${id}`)]),
    hintLine(['leave it undone', cli(`outbox skip ${id} --reason 'not traded'`)]),
    hintLine(['or put it right', cli(`outbox supersede ${id} --key corrected-${id} --request '${request}'`)]),
  ].join('\n');
}

/** The other side of a queue: also named by the configuration, and only for a database of our own. */
export async function openSummarizer(config: Config): Promise<Summarizer | null> {
  const { database, jobs, roles } = config;
  const isOurs = database.mode === 'embedded' && jobs.queues.length === 0;
  const isWhole = roles.includes('api') && roles.includes('workers');
  if (!isOurs || !isWhole || !existsSync(summarizerModule)) return null;
  const { openSummarizer: open } = (await import(summarizerModule.href)) as SummarizerModule;
  return open();
}

/** Jobs. */
export function startNewsroom(summarizer: Summarizer, { system, print, cli }: DemoOptions): Demo {
  return {
    says: 'A demo newsroom is running; its summariser never answers for some articles, and the others go on.',
    toTry: [
      ['what waits, and what runs', cli('jobs queues')],
      ['its jobs, newest first', cli('jobs list')],
      ['what needs a person', cli('jobs dead')],
    ],
    stop: runInBackground(system, (signal) =>
      summarizer.run({
        redriveUrl: system.url,
        signal,
        seed: randomUUID(),
        onDead: (jobId) =>
          print(
            `Job ${jobId} is a dead letter: the demo summariser has failed with it for good.\n` +
              hintLine(['see what happened', cli(`jobs show ${jobId}`)]),
          ),
        onLearned: () =>
          print(
            'The demo summariser can do long articles now: run the dead ones again, they go through.\n' +
              hintLine(['run them again', cli("jobs requeue --queue summarize --error 'timeout:'")]),
          ),
      }),
    ),
  };
}

/** The services that a workflow calls: also named by the configuration, and only for a database of our own. */
export async function openFulfilment(config: Config): Promise<Fulfilment | null> {
  const { database, services, roles } = config;
  const isOurs = database.mode === 'embedded' && services.length === 0;
  const isWhole = roles.includes('api') && roles.includes('workers');
  if (!isOurs || !isWhole || !existsSync(fulfilmentModule)) return null;
  const { openFulfilment: open } = (await import(fulfilmentModule.href)) as FulfilmentModule;
  return open();
}

/** Sagas. */
export function startFulfilment(fulfilment: Fulfilment, { system, print }: DemoOptions): Demo {
  const sagas = `${system.url}/api/v1/sagas`;
  return {
    says: 'A demo warehouse is running; what one of its three services refuses, the others undo.',
    toTry: [
      ['its sagas, newest first', `curl ${sagas}`],
      ['those that were undone', `curl '${sagas}?status=FAILED'`],
      ['what needs a person', `curl '${sagas}?needs_person=true'`],
    ],
    stop: runInBackground(system, (signal) =>
      fulfilment.run({
        redriveUrl: system.url,
        signal,
        seed: randomUUID(),
        onStuck: (sagaId) =>
          print(
            `Saga ${sagaId} needs a person: the demo payment service cannot pay the money back.\n` +
              hintLine(['see what happened', `curl ${sagas}/${sagaId}`]),
          ),
      }),
    ),
  };
}

export function hintLine([what, command]: Hint): string {
  return `  ${what.padEnd(26)}${command}`;
}

/** Begins it, and gives what ends it. */
function runInBackground(
  { logger }: System,
  run: (signal: AbortSignal) => Promise<void>,
): () => Promise<void> {
  const stopping = new AbortController();
  const running = run(stopping.signal).catch((error: unknown) =>
    logger.error({ err: error }, 'the demo traffic has stopped'),
  );
  return async () => {
    stopping.abort();
    await running;
  };
}
