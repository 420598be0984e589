import type { Command } from 'commander';
import type { System } from '../compose.ts';
import type { Config } from '../config/config.ts';
import { escapeText } from '../kernel/escape-text.ts';
import { createLogger, type Logger } from '../platform/telemetry/logger.ts';
import {
  hasShop,
  hintLine,
  openFulfilment,
  openSummarizer,
  openTradingPartner,
  shopPolicies,
  startFulfilment,
  startNewsroom,
  startShop,
  startTrading,
  withoutDemo,
  type Demo,
  type DemoOptions,
  type Fulfilment,
  type Summarizer,
  type TradingPartner,
} from './demo.ts';
import { withExamples } from './examples.ts';
import { configFrom, withServerOptions, type ConfigArgs } from './options.ts';
import { listenForStop, runUntilSignal } from './run-until-signal.ts';
import type { Terminal } from './terminal.ts';
import { explainingDatabase } from './with-database.ts';

type DevArgs = ConfigArgs & Readonly<{ demo: boolean; logs?: boolean }>;

/** A longer start is explained: the first one creates the database. */
const quietStartMs = 1500;

export function addDevCommand(program: Command, terminal: Terminal): void {
  withExamples(
    withServerOptions(
      program
        .command('dev')
        .description(
          'run everything on this machine: server, console, embedded PostgreSQL, local broker, demo traffic',
        ),
    ),
    'redrive dev',
    'redrive dev --port 9000 --no-demo',
  )
    .option('--no-demo', 'without demo traffic')
    .option('--logs', 'also print the log')
    .action((args: DevArgs) => runDev(args, terminal));
}

async function runDev(args: DevArgs, terminal: Terminal): Promise<void> {
  const print = (text: string): void => void terminal.stdout.write(`${text}\n`);
  const stopAsked = listenForStop({ followsParent: terminal.env['npm_lifecycle_event'] !== undefined });
  stopAsked.addEventListener('abort', () => print('Stopping. Press Ctrl-C again to stop immediately.'));
  const partners = await openPartners(args, devConfig(args, terminal));
  try {
    const config = devConfig(args, terminal, partners);
    const system = await start(config, args, terminal, { print, stopAsked });
    const demos = stopAsked.aborted
      ? []
      : await startDemos({ config, system, print, cli: cliFor(system) }, args, partners);
    if (!stopAsked.aborted) print(welcome(config, system, demos));
    const beforeStop = async (): Promise<void> => {
      await Promise.all(demos.map((demo) => demo.stop()));
    };
    await runUntilSignal(system, { stopAsked, beforeStop });
  } finally {
    // After the system, so that calls in progress get their answers.
    await Promise.all([
      partners.partner?.close(),
      partners.summarizer?.close(),
      partners.fulfilment?.close(),
    ]);
  }
}

/** The demo's external services; null if that demo does not run. */
type Partners = Readonly<{
  partner: TradingPartner | null;
  summarizer: Summarizer | null;
  fulfilment: Fulfilment | null;
}>;

async function openPartners({ demo }: DevArgs, config: Config): Promise<Partners> {
  if (!demo) return { partner: null, summarizer: null, fulfilment: null };
  return {
    partner: await openTradingPartner(config),
    summarizer: await openSummarizer(config),
    fulfilment: await openFulfilment(config),
  };
}

async function start(
  config: Config,
  args: DevArgs,
  terminal: Terminal,
  { print, stopAsked }: Readonly<{ print: (text: string) => void; stopAsked: AbortSignal }>,
): Promise<System> {
  const { loggerFor, startSystem } = await import('../compose.ts');
  const logger = args.logs === true ? loggerFor(config) : warningsFor(config, terminal);
  const explaining = setTimeout(
    () => print('Starting. The first start creates a database and takes some seconds.'),
    quietStartMs,
  );
  return explainingDatabase(config, () =>
    startSystem(config, { onPortTaken: 'next', stopAsked, logger }),
  ).finally(() => clearTimeout(explaining));
}

/** The config file, the environment and the command line override the defaults of `dev`. */
function devConfig(args: DevArgs, { env }: Terminal, partners?: Partners): Config {
  // An empty variable counts as unset, so it does not override a default.
  const given = { env: Object.fromEntries(Object.entries(env).filter(([, text]) => text !== '')) };
  const { sources, kafka } = configFrom(args, {}, given);
  const isOpen = (path: string): boolean => !(path in sources);
  const isLocal = kafka.local || ['kafka.brokers', 'kafka.local', 'kafka.enabled'].every(isOpen);
  const defaults = {
    ...(isLocal ? { KAFKA_LOCAL: 'true' } : {}),
    // The demo creates its topics after the start; the default of 30 s would delay the first dead letter.
    ...(isLocal && isOpen('kafka.discovery_interval') ? { KAFKA_DISCOVERY_INTERVAL: '1s' } : {}),
    ...(isLocal && args.demo && hasShop() && isOpen('dlq.auto_retry')
      ? { DLQ_AUTO_RETRY: JSON.stringify(shopPolicies) }
      : {}),
    ...(partners?.partner == null
      ? {}
      : { OUTBOX_DESTINATIONS: JSON.stringify(partners.partner.destinations) }),
    ...(partners?.summarizer == null ? {} : { JOBS_QUEUES: JSON.stringify(partners.summarizer.queues) }),
    ...(partners?.summarizer == null || !isOpen('jobs.cron')
      ? {}
      : { JOBS_CRON: JSON.stringify(partners.summarizer.schedules) }),
    ...(partners?.fulfilment == null ? {} : { SERVICES: JSON.stringify(partners.fulfilment.services) }),
  };
  return configFrom(args, defaults, given);
}

async function startDemos(
  options: DemoOptions,
  { demo }: DevArgs,
  { partner, summarizer, fulfilment }: Partners,
): Promise<readonly Demo[]> {
  if (!demo) return [withoutDemo('No demo traffic.', options)];
  const { broker } = options.system;
  return [
    await startShop(options),
    ...(partner === null || broker === null ? [] : [startTrading(partner, broker, options)]),
    ...(summarizer === null ? [] : [startNewsroom(summarizer, options)]),
    ...(fulfilment === null ? [] : [startFulfilment(fulfilment, options)]),
  ];
}

function welcome(config: Config, system: System, demos: readonly Demo[]): string {
  const { url } = system;
  const wanted = config.server.port;
  const isMoved = wanted !== 0 && new URL(url).port !== String(wanted);
  return [
    `Redrive is ready: ${url}/${isMoved ? ` (port ${wanted} is in use)` : ''}`,
    `Open it in a browser: that is the console. The API is described at ${url}/docs.`,
    ...whereDataIs(config, system),
    'Press Ctrl-C to stop.',
    ...demos.flatMap(({ says, toTry }) => ['', says, ...toTry.map(hintLine)]),
    '',
  ].join('\n');
}

/** The default URL needs no --url. */
function cliFor({ url }: System): (words: string) => string {
  const where = url === 'http://127.0.0.1:8080' ? '' : ` --url ${url}`;
  return (words) => `npx redrive ${words}${where}`;
}

/** The export line is there to be pasted: services and psql connect to the same database. */
function whereDataIs({ database }: Config, { embeddedDatabaseUrl }: System): readonly string[] {
  if (database.mode === 'server') return [`Database: ${database.name} on ${database.host}.`];
  return [`Data folder: ${database.dataDir}. Database:`, `  export DATABASE_URL=${embeddedDatabaseUrl}`];
}

/** Without --logs only warnings and errors are printed, as text instead of JSON. */
function warningsFor({ app }: Config, terminal: Terminal): Logger {
  const { name: service, version, environment } = app;
  const write = (line: string): void => void terminal.stderr.write(`${sentenceOf(line)}\n`);
  return createLogger({ service, version, environment, level: 'warn', stream: { write } });
}

type LogLine = Readonly<{
  level: string;
  msg?: string;
  topic?: string;
  destination?: string;
  order_id?: string;
  queue?: string;
  job_id?: string;
  workflow?: string;
  saga_id?: string;
  error?: string;
  err?: Readonly<{ message?: string }>;
}>;

function sentenceOf(line: string): string {
  const { level, msg, topic, error, err, ...about } = JSON.parse(line) as LogLine;
  const parts = [topic, itemOf(about), msg, error, err?.message].filter((part) => part !== undefined);
  return escapeText(`${level}: ${parts.join(': ')}`);
}

function itemOf(line: Omit<LogLine, 'level'>): string | undefined {
  const { destination, order_id: order, queue, job_id: job, workflow, saga_id: saga } = line;
  if (order !== undefined) return `order ${order} to ${destination}`;
  if (saga !== undefined) return `saga ${saga} of ${workflow}`;
  return job === undefined ? (destination ?? queue) : `job ${job} of ${queue}`;
}
