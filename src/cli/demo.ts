import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { System } from '../compose.ts';
import type { Config } from '../config/config.ts';
import type { Broker } from '../platform/broker/port.ts';

/** Demo traffic of `redrive dev`, and what the welcome text says about it. */
export type Demo = Readonly<{ says: string; toTry: readonly Hint[]; stop(): Promise<void> }>;

export type Hint = readonly [what: string, command: string];

export type DemoOptions = Readonly<{
  config: Config;
  system: System;
  print: (text: string) => void;
  /** A command line for this server. */
  cli: (words: string) => string;
}>;

/** The published package has no examples. */
const shopModule = new URL('../../examples/orders-pipeline/orders-pipeline.ts', import.meta.url);
const giftCardsModule = new URL('../../examples/orders-pipeline/redrive-gift-cards.ts', import.meta.url);
const correctModule = new URL('../../examples/orders-pipeline/correct-order.ts', import.meta.url);
const tradingModule = new URL('../../examples/trading-partner/trading-partner.ts', import.meta.url);
const summarizerModule = new URL('../../examples/summarizer/summarizer.ts', import.meta.url);
const fulfilmentModule = new URL('../../examples/fulfilment/fulfilment.ts', import.meta.url);

type ShopModule = Readonly<{
  runOrdersPipeline(
    options: Readonly<{ broker: Broker; signal: AbortSignal; seed: string; onBugFixed: () => void }>,
  ): Promise<void>;
}>;

type GiftCardsModule = Readonly<{
  redriveGiftCards(
    options: Readonly<{ redriveUrl: string; signal: AbortSignal; onStopped: (redriveId: string) => void }>,
  ): Promise<void>;
}>;

type CorrectModule = Readonly<{
  correctOrder(options: Readonly<{ redriveUrl: string; signal: AbortSignal }>): Promise<void>;
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
  schedules: Readonly<Record<string, unknown>>;
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
      ['failed messages by topic', cli('dlq topics')],
      ['messages with errors', `curl ${system.url}/api/v1/dlq/messages`],
    ],
    stop: async () => {},
  };
}

/** Dead letters. Only on the local broker, because other consumers would read the demo messages of a real one. */
export async function startShop(options: DemoOptions): Promise<Demo> {
  const { config, system, print, cli } = options;
  const { broker } = system;
  if (broker === null || !config.kafka.local)
    return withoutDemo('No demo traffic: it needs the local broker.', options);
  if (!hasShop()) return withoutDemo('No demo traffic: the installed package has no examples.', options);
  const { runOrdersPipeline } = (await import(shopModule.href)) as ShopModule;
  const { redriveGiftCards } = (await import(giftCardsModule.href)) as GiftCardsModule;
  const { correctOrder } = (await import(correctModule.href)) as CorrectModule;
  let stoppedId: string | null = null;
  const shop = (signal: AbortSignal): Promise<void> =>
    runOrdersPipeline({
      broker,
      signal,
      seed: randomUUID(),
      onBugFixed: () => print(aboutFix(stoppedId, cli)),
    });
  const operator = (signal: AbortSignal): Promise<void> =>
    redriveGiftCards({
      redriveUrl: system.url,
      signal,
      onStopped(id) {
        stoppedId = id;
        print(aboutStop(id, cli));
      },
    });
  const stops = [runInBackground(system, shop)];
  if (config.roles.includes('api') && config.roles.includes('ingest'))
    stops.push(
      runInBackground(system, operator),
      runInBackground(system, (signal) => correctOrder({ redriveUrl: system.url, signal })),
    );
  return {
    says: 'A demo shop is running; some of its orders and payments fail and become dead letters. A policy retries payments for which the bank was down.',
    toTry: [
      ['failed messages by topic', cli('dlq topics')],
      ['failures by cause', cli('dlq groups')],
      ['messages with errors', `curl ${system.url}/api/v1/dlq/orders.v1`],
      ['retry them all', cli('dlq retry-all orders.v1')],
      ['automatic retries', cli('dlq policies list')],
      ['a corrected message', cli('dlq list --has-edit')],
    ],
    stop: async () => {
      await Promise.all(stops.map((stop) => stop()));
    },
  };
}

/** What `redrive dev` configures in `dlq.auto_retry` if the shop runs. */
export const shopPolicies = [
  {
    name: 'bank',
    topics: ['payments.v1'],
    error_classes: ['com.example.payments.BankUnavailableException'],
    delay: '30s',
    rate: 5,
  },
];

export function hasShop(): boolean {
  return existsSync(shopModule);
}

function aboutStop(id: string, cli: DemoOptions['cli']): string {
  return [
    'A redrive of the gift card orders was stopped by its canary: they still come back as dead letters.',
    hintLine(['see why', cli(`dlq redrive show ${id}`)]),
  ].join('\n');
}

function aboutFix(stoppedId: string | null, cli: DemoOptions['cli']): string {
  const fixed = 'The bug in the demo shop is fixed: retries of its gift card orders succeed now.';
  if (stoppedId === null) return fixed;
  const resume = cli(`dlq redrive resume ${stoppedId} --reason 'the bug is fixed'`);
  return [fixed, hintLine(['resume their redrive', resume])].join('\n');
}

/**
 * The receiver of the outbox has to start before the system, because it is part of the configuration. Only with the
 * embedded database: with a shared one, other processes would send demo orders to a real receiver.
 */
export async function openTradingPartner(config: Config): Promise<TradingPartner | null> {
  const { database, kafka, outbox, roles } = config;
  const isOurs = database.mode === 'embedded' && kafka.local && outbox.destinations.length === 0;
  const isWhole = roles.includes('api') && roles.includes('workers');
  if (!isOurs || !isWhole || !existsSync(tradingModule)) return null;
  const { openTradingPartner: open } = (await import(tradingModule.href)) as TradingModule;
  // In the database's folder: deleting the folder resets both.
  return open({ bookFile: join(database.dataDir, 'demo-broker.jsonl') });
}

/** Outbound requests (orders). */
export function startTrading(partner: TradingPartner, broker: Broker, options: DemoOptions): Demo {
  const { system, print, cli } = options;
  return {
    says: 'A demo trading desk is running; its broker fails in many ways, but executes each order once.',
    toTry: [
      ['orders, newest first', cli('outbox list')],
      ['items that need attention', cli('outbox list --needs-attention')],
      ['waiting orders', cli('outbox destinations')],
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
            `The demo broker is down for ${forMs / 1000} seconds: its circuit opens and closes.\n` +
              hintLine(['watch the circuit', cli('outbox destinations')]),
          ),
      }),
    ),
  };
}

function aboutMistake({ id, symbol, account, corrected }: Mistake, cli: DemoOptions['cli']): string {
  const behind = account === null ? '' : ` and blocks the orders of ${account} behind it`;
  const request = JSON.stringify(corrected);
  return [
    `Order ${id} needs attention: the demo broker does not trade ${symbol}. It is dead${behind}.`,
    hintLine(['show its history', cli(`outbox show ${id}`)]),
    hintLine(['skip it', cli(`outbox skip ${id} --reason 'not traded'`)]),
    hintLine(['or replace it', cli(`outbox supersede ${id} --key corrected-${id} --request '${request}'`)]),
  ].join('\n');
}

/** The push target of a queue. Also part of the configuration, and only with the embedded database. */
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
    says: 'A demo newsroom is running; its summarizer never answers for some articles, while the others succeed.',
    toTry: [
      ['waiting and running jobs', cli('jobs queues')],
      ['jobs, newest first', cli('jobs list')],
      ['items that need attention', cli('jobs dead')],
    ],
    stop: runInBackground(system, (signal) =>
      summarizer.run({
        redriveUrl: system.url,
        signal,
        seed: randomUUID(),
        onDead: (jobId) =>
          print(
            `Job ${jobId} is dead: the demo summarizer failed too often.\n` +
              hintLine(['show its history', cli(`jobs show ${jobId}`)]),
          ),
        onLearned: () =>
          print(
            'The demo summarizer can handle long articles now: requeued jobs succeed.\n' +
              hintLine(['requeue them', cli("jobs requeue --queue summarize --error 'timed out'")]),
          ),
      }),
    ),
  };
}

/** The services of a workflow. Also part of the configuration, and only with the embedded database. */
export async function openFulfilment(config: Config): Promise<Fulfilment | null> {
  const { database, services, roles } = config;
  const isOurs = database.mode === 'embedded' && services.length === 0;
  const isWhole = roles.includes('api') && roles.includes('workers');
  if (!isOurs || !isWhole || !existsSync(fulfilmentModule)) return null;
  const { openFulfilment: open } = (await import(fulfilmentModule.href)) as FulfilmentModule;
  return open();
}

/** Sagas. */
export function startFulfilment(fulfilment: Fulfilment, { system, print, cli }: DemoOptions): Demo {
  return {
    says: 'A demo warehouse is running; if one of its three services refuses, the others undo their steps.',
    toTry: [
      ['sagas, newest first', cli('saga list')],
      ['compensated sagas', cli('saga list --status FAILED')],
      ['items that need attention', cli('saga list --needs-attention')],
    ],
    stop: runInBackground(system, (signal) =>
      fulfilment.run({
        redriveUrl: system.url,
        signal,
        seed: randomUUID(),
        onStuck: (sagaId) =>
          print(
            `Saga ${sagaId} needs attention: the demo payment service cannot refund.\n` +
              hintLine(['show its history', cli(`saga show ${sagaId}`)]),
          ),
      }),
    ),
  };
}

export function hintLine([what, command]: Hint): string {
  return `  ${what.padEnd(26)}${command}`;
}

/** Starts it and returns a function that stops it. */
function runInBackground(
  { logger }: System,
  run: (signal: AbortSignal) => Promise<void>,
): () => Promise<void> {
  const stopping = new AbortController();
  const running = run(stopping.signal).catch((error: unknown) =>
    logger.error({ err: error }, 'demo traffic failed'),
  );
  return async () => {
    stopping.abort();
    await running;
  };
}
