import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { System } from '../compose.ts';
import type { Config } from '../config.ts';
import type { Broker } from '../platform/broker/port.ts';
import { createLogger, type Logger } from '../platform/telemetry/logger.ts';
import { withExamples } from './examples.ts';
import { configFrom, withServerOptions, type ConfigArgs } from './options.ts';
import { listenForStop, runUntilSignal } from './run-until-signal.ts';
import type { Terminal } from './terminal.ts';
import { explainingDatabase } from './with-database.ts';

type DevArgs = ConfigArgs & Readonly<{ demo: boolean; logs?: boolean }>;

/** A start that takes longer than this is explained; the first one makes the database. */
const quietStartMs = 1500;

export function addDevCommand(program: Command, terminal: Terminal): void {
  withExamples(
    withServerOptions(
      program
        .command('dev')
        .description('run the whole system on this machine: embedded PostgreSQL, local broker, demo traffic'),
    ),
    'redrive dev',
    'redrive dev --port 9000 --no-demo',
  )
    .option('--no-demo', 'without demo traffic')
    .option('--logs', 'print the log lines as well')
    .action((args: DevArgs) => runDev(args, terminal));
}

async function runDev(args: DevArgs, terminal: Terminal): Promise<void> {
  const print = (text: string): void => void terminal.stdout.write(`${text}\n`);
  const stopAsked = listenForStop({ followsParent: terminal.env['npm_lifecycle_event'] !== undefined });
  stopAsked.addEventListener('abort', () => print('Stopping. Ctrl-C again ends it at once.'));
  const config = devConfig(args, terminal);
  const { loggerFor, startSystem } = await import('../compose.ts');
  const logger = args.logs === true ? loggerFor(config) : warningsFor(config, terminal);

  const explaining = setTimeout(
    () => print('Starting. The first start makes a database and takes some seconds.'),
    quietStartMs,
  );
  const system = await explainingDatabase(config, () =>
    startSystem(config, { onPortTaken: 'next', logger }),
  ).finally(() => clearTimeout(explaining));

  const demo = args.demo ? await startDemo(config, system, print) : noDemo('No demo traffic.');
  if (!stopAsked.aborted) print(welcome(config, system.url, demo));
  await runUntilSignal(system, { stopAsked, beforeStop: demo.stop });
}

/** Our defaults give way to whatever the file, the environment or the command line says. */
function devConfig(args: DevArgs, terminal: Terminal): Config {
  const { sources, kafka } = configFrom(args, {}, terminal);
  const isOpen = (path: string): boolean => !(path in sources);
  const isLocal = kafka.local || ['kafka.brokers', 'kafka.local', 'kafka.enabled'].every(isOpen);
  const defaults = {
    ...(isLocal ? { KAFKA_LOCAL: 'true' } : {}),
    // The demo makes its topics after the start, and nobody wants to wait half a minute for the first dead letter.
    ...(isLocal && isOpen('kafka.discovery_interval') ? { KAFKA_DISCOVERY_INTERVAL: '1s' } : {}),
  };
  return configFrom(args, defaults, terminal);
}

type Demo = Readonly<{ says: string; isRunning: boolean; stop: () => Promise<void> }>;

function noDemo(says: string): Demo {
  return { says, isRunning: false, stop: async () => {} };
}

type DemoModule = Readonly<{
  runOrdersPipeline(
    options: Readonly<{ broker: Broker; signal: AbortSignal; seed: string; onBugFixed: () => void }>,
  ): Promise<void>;
}>;

/** The examples are part of a clone, not of the published package. */
const demoModule = new URL('../../examples/orders-pipeline/orders-pipeline.ts', import.meta.url);

/** Only ever on the local broker: what arrives at a real one is read by others. */
async function startDemo(config: Config, system: System, print: (text: string) => void): Promise<Demo> {
  const { broker, logger } = system;
  if (broker === null || !config.kafka.local)
    return noDemo('No demo traffic: it runs on the local broker only.');
  if (!existsSync(demoModule))
    return noDemo('No demo traffic: this package was installed without its examples.');
  const { runOrdersPipeline } = (await import(demoModule.href)) as DemoModule;
  const stopping = new AbortController();
  const running = runOrdersPipeline({
    broker,
    signal: stopping.signal,
    seed: randomUUID(),
    onBugFixed: () =>
      print('The bug in the demo shop is fixed: retry its gift card orders, they go through now.'),
  }).catch((error: unknown) => logger.error({ err: error }, 'the demo traffic has stopped'));
  return {
    says: 'A demo shop is running; some of its orders and payments fail and become dead letters.',
    isRunning: true,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function welcome(config: Config, url: string, demo: Demo): string {
  const wanted = config.server.port;
  const isMoved = wanted !== 0 && new URL(url).port !== String(wanted);
  return [
    `Redrive is ready: ${url}/docs${isMoved ? ` (port ${wanted} is taken)` : ''}`,
    `${demo.says} ${whereDataIs(config)} Ctrl-C stops it.`,
    '',
    ...whatToTry(url, demo).map(([what, command]) => `  ${what.padEnd(24)}${command}`),
    '',
  ].join('\n');
}

/** Every command works as it stands, so without the demo none names a topic. */
function whatToTry(url: string, { isRunning }: Demo): readonly (readonly [string, string])[] {
  const cli = (words: string): string => `npx redrive dlq ${words}${isDefault(url) ? '' : ` --url ${url}`}`;
  const byTopic = ['what failed, by topic', cli('topics')] as const;
  if (!isRunning) return [byTopic, ['each message, and why', `curl ${url}/api/v1/dlq/messages`]];
  return [
    byTopic,
    ['each message, and why', `curl ${url}/api/v1/dlq/orders.v1`],
    ['try them all again', cli('retry-all orders.v1')],
  ];
}

/** Where the command line looks by itself. */
function isDefault(url: string): boolean {
  return url === 'http://127.0.0.1:8080';
}

function whereDataIs({ database }: Config): string {
  return database.mode === 'embedded'
    ? `The data stays in ${database.dataDir}.`
    : `The data is in ${database.name} on ${database.host}.`;
}

/** Without --logs only what needs attention is said, as a sentence instead of JSON. */
function warningsFor({ app }: Config, terminal: Terminal): Logger {
  const { name: service, version, environment } = app;
  const write = (line: string): void => void terminal.stderr.write(`${sentenceOf(line)}\n`);
  return createLogger({ service, version, environment, level: 'warn', stream: { write } });
}

type LogLine = Readonly<{
  level: string;
  msg?: string;
  topic?: string;
  err?: Readonly<{ message?: string }>;
}>;

function sentenceOf(line: string): string {
  const { level, msg, topic, err } = JSON.parse(line) as LogLine;
  return `${level}: ${[topic, msg, err?.message].filter((part) => part !== undefined).join(': ')}`;
}
