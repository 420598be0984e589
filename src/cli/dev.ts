import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { loggerFor, startSystem, type System } from '../compose.ts';
import type { Config } from '../config.ts';
import { messageOf } from '../kernel/errors.ts';
import type { Broker } from '../platform/broker/port.ts';
import { createLogger, type Logger } from '../platform/telemetry/logger.ts';
import { configFrom, withServerOptions, type ConfigArgs } from './options.ts';
import { listenForStop, runUntilSignal } from './run-until-signal.ts';

type DevArgs = ConfigArgs & Readonly<{ demo: boolean; logs?: boolean }>;

export function addDevCommand(program: Command): void {
  withServerOptions(
    program
      .command('dev')
      .description('run the whole system on this machine: embedded PostgreSQL, local broker, demo traffic'),
  )
    .option('--no-demo', 'without demo traffic')
    .option('--logs', 'print the log lines as well')
    .action(runDev);
}

async function runDev(args: DevArgs): Promise<void> {
  const stopAsked = listenForStop();
  stopAsked.addEventListener('abort', () => print('Stopping. Ctrl-C again ends it at once.'));
  const config = devConfig(args);
  const logger = args.logs === true ? loggerFor(config) : warningsFor(config);
  const system = await startSystem(config, { onPortTaken: 'next', logger });
  const demo = args.demo
    ? await startDemo(config, system)
    : { says: 'No demo traffic.', stop: async () => {} };
  if (!stopAsked.aborted) print(welcome(config, system.url, demo));
  await runUntilSignal(system, { stopAsked, beforeStop: demo.stop });
}

/** Our defaults give way to whatever the file, the environment or the command line says. */
function devConfig(args: DevArgs): Config {
  const { sources } = configFrom(args);
  const isOpen = (...paths: readonly string[]): boolean => paths.every((path) => !(path in sources));
  return configFrom(args, {
    ...(isOpen('kafka.brokers', 'kafka.local', 'kafka.enabled') ? { KAFKA_LOCAL: 'true' } : {}),
    // The demo makes its topics after the start; nobody wants to wait half a minute for the first dead letter.
    ...(isOpen('kafka.discovery_interval') ? { KAFKA_DISCOVERY_INTERVAL: '1s' } : {}),
    ...(isOpen('database.data_dir') ? { DATABASE_DATA_DIR: '.redrive/postgres' } : {}),
  });
}

type Demo = Readonly<{ says: string; isRunning?: boolean; stop: () => Promise<void> }>;

type DemoModule = Readonly<{
  runOrdersPipeline(
    options: Readonly<{ broker: Broker; signal: AbortSignal; seed: string; onBugFixed: () => void }>,
  ): Promise<void>;
}>;

/** The examples are part of a clone, not of the published package. */
const demoModule = new URL('../../examples/orders-pipeline/orders-pipeline.ts', import.meta.url);

/** Only ever on the local broker: what arrives at a real one is read by others. */
async function startDemo(config: Config, { broker, logger }: System): Promise<Demo> {
  const none = (says: string): Demo => ({ says, stop: async () => {} });
  if (broker === null || !config.kafka.local)
    return none('No demo traffic: it runs on the local broker only.');
  if (!existsSync(demoModule))
    return none('No demo traffic: this package was installed without its examples.');
  const { runOrdersPipeline } = (await import(demoModule.href)) as DemoModule;
  const stopping = new AbortController();
  const running = runOrdersPipeline({
    broker,
    signal: stopping.signal,
    seed: randomUUID(),
    onBugFixed: () =>
      print('The bug in the demo is fixed: orders for gift cards succeed now when you retry them.'),
  }).catch((error: unknown) => logger.error({ err: error }, 'the demo traffic has stopped'));
  return {
    says: 'A demo shop is running. Some of its orders and payments fail, so dead letters keep arriving.',
    isRunning: true,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function welcome(config: Config, url: string, demo: Demo): string {
  const wanted = config.server.port;
  const isNext = wanted !== 0 && Number(new URL(url).port || 80) !== wanted;
  const topic = demo.isRunning === true ? 'orders.v1' : '<topic>';
  const api = `${url}/api/v1/dlq`;
  return [
    `Redrive is ready: ${url}/docs${isNext ? ` (port ${wanted} is taken)` : ''}`,
    '',
    `${demo.says} ${whereDataIs(config)} Ctrl-C stops it.`,
    '',
    `  count dead letters   curl ${api}`,
    `  see what failed      curl ${api}/${topic}`,
    `  try them all again   curl -X POST ${api}/${topic}/retry-all`,
    '',
  ].join('\n');
}

function whereDataIs({ database }: Config): string {
  return database.mode === 'embedded'
    ? `The data is kept in ${database.dataDir}.`
    : `The data is in ${database.name} on ${database.host}.`;
}

/** Without --logs only what needs attention is said, as a sentence instead of JSON. */
function warningsFor({ app }: Config): Logger {
  return createLogger({
    service: app.name,
    version: app.version,
    environment: app.environment,
    level: 'warn',
    stream: { write: (line) => void process.stderr.write(`${sentenceOf(line)}\n`) },
  });
}

type LogLine = Readonly<{ level: string; msg?: string; err?: Readonly<{ message?: string }> }>;

function sentenceOf(line: string): string {
  try {
    const { level, msg, err } = JSON.parse(line) as LogLine;
    return `${level}: ${[msg, err?.message].filter((part) => part !== undefined).join(': ')}`;
  } catch (error) {
    return `${line.trimEnd()} (${messageOf(error)})`;
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
