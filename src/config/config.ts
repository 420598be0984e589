/**
 * Configuration, read once at start: a YAML file, then `config.<environment>.yaml` beside it, then secret files,
 * then environment variables, then command-line options. Later sources override earlier ones. Maps merge, lists
 * replace, null restores the default.
 *
 * A file is read only if `--config` or CONFIG_PATH names it, so that nothing depends on the working folder. Without one,
 * the configuration is made of defaults and environment variables.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { startCheck, type Check } from './check.ts';
import { ConfigError } from './config-error.ts';
import { environmentLayer } from './layers/environment-layer.ts';
import { isLoopback } from './formats/host-format.ts';
import { mergeLayers, type Layer } from './layers/layer.ts';
import { resolveDatabase, type DatabaseConfig } from './resolve/resolve-database.ts';
import { resolveJobs, type JobsConfig } from './resolve/resolve-jobs.ts';
import { resolveKafka, type KafkaConfig } from './resolve/resolve-kafka.ts';
import { resolveNotify, type NotifierConfig } from './resolve/resolve-notify.ts';
import { resolveOutbox, type OutboxConfig } from './resolve/resolve-outbox.ts';
import { resolveServices, type ServiceConfig } from './resolve/resolve-services.ts';
import { schema, type Settings } from './schema.ts';
import { overrideWarnings, secretLayer } from './layers/secret-layer.ts';
import { readValues, settingsOf } from './setting.ts';
import { readYamlLayer } from './layers/yaml-layer.ts';

/** Deeply frozen. Secrets are redacted in logs. */
export type Config = Omit<
  Settings,
  'app' | 'database' | 'kafka' | 'outbox' | 'jobs' | 'notify' | 'services'
> &
  Readonly<{
    app: Settings['app'] & Readonly<{ version: string }>;
    database: DatabaseConfig;
    kafka: KafkaConfig;
    outbox: OutboxConfig;
    jobs: JobsConfig;
    services: readonly ServiceConfig[];
    notify: readonly NotifierConfig[];
    /** Sources of the values that are not defaults, by path: `{ "server.port": "--port" }`. */
    sources: Readonly<Record<string, string>>;
    /** Probable mistakes, to be logged at start. */
    warnings: readonly string[];
  }>;

export type ConfigOptions = Readonly<{
  argv?: Readonly<{
    configPath?: string | undefined;
    host?: string | undefined;
    port?: number | string | undefined;
    dataDir?: string | undefined;
  }>;
  env: NodeJS.ProcessEnv;
  secretsDir?: string;
}>;

/** Throws a ConfigError with all problems. */
export function loadConfig({ argv = {}, env, secretsDir = '/vault/secrets' }: ConfigOptions): Config {
  const settings = settingsOf(schema);
  const environment = environmentLayer(env, settings);
  const written = readFiles(argv.configPath ?? env['CONFIG_PATH'], environment);
  const secrets = secretLayer(secretsDir);
  const files = [...written, secrets];
  const chosen = mergeLayers([...files, environment]);
  const layers = [...files, environmentLayer(env, settings, chosen), optionsLayer(argv)];
  const given = mergeLayers(layers);
  const problems = layers.flatMap((layer) => layer.problems);
  const warnings = [...layers.flatMap((layer) => layer.warnings), ...overrideWarnings(written, secrets)];

  const values = readValues(schema, given, problems);
  const check = startCheck(given, problems, warnings);
  checkServer(values.server, check);
  checkDlq(values, check);
  const kafka = resolveKafka(values.kafka, check);
  const outbox = resolveOutbox(values.outbox, kafka, check);
  const config: Config = {
    ...values,
    app: { ...values.app, version: values.app.version ?? packageVersion() },
    database: resolveDatabase(values.database, check),
    kafka,
    outbox,
    jobs: resolveJobs(values.jobs, check),
    services: resolveServices(values.services, values.saga, check),
    notify: resolveNotify(values.notify, outbox, check),
    sources: Object.fromEntries([...given].map(([path, { source }]) => [path, source])),
    warnings,
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return deepFreeze(config);
}

/** The named file and the environment's file; the environment comes from the variable or the first file. */
function readFiles(configPath: string | undefined, environment: Layer): readonly Layer[] {
  if (!configPath) return [];
  const base = readYamlLayer(configPath, schema);
  if (!base) return [{ entries: [], problems: [{ path: configPath, reason: 'no such file' }], warnings: [] }];
  const environmentOf = (layers: readonly Layer[]): unknown =>
    mergeLayers([...layers, environment]).get('app.environment')?.value ?? schema.app.environment.fallback;
  const chosen = schema.app.environment.parse(environmentOf([base]));
  // An invalid name is reported later, and never becomes part of a path.
  if (!chosen.ok) return [base];
  const file = join(dirname(configPath), `config.${chosen.value}.yaml`);
  const second = readYamlLayer(file, schema);
  if (!second) return [base];
  if (environmentOf([base, second]) === chosen.value) return [base, second];
  const problem = {
    path: 'app.environment',
    reason: 'must not differ from the environment that chose this file',
    source: file,
  };
  return [base, { ...second, problems: [...second.problems, problem] }];
}

function optionsLayer({ host, port, dataDir }: NonNullable<ConfigOptions['argv']>): Layer {
  const options = [
    { path: 'server.host', value: host, source: '--host' },
    {
      path: 'server.port',
      value: typeof port === 'string' ? schema.server.port.fromText(port) : port,
      source: '--port',
    },
    { path: 'database.data_dir', value: dataDir, source: '--data-dir' },
  ];
  return { entries: options.filter(({ value }) => value !== undefined), problems: [], warnings: [] };
}

function checkServer({ host, allowUnauthenticated }: Settings['server'], { report, warn }: Check): void {
  if (isLoopback(host)) return;
  if (allowUnauthenticated)
    warn(
      `server.allow_unauthenticated is true and server.host is ${host}: everyone who can reach this port can read and change everything; put an authenticating proxy in front of it`,
    );
  else
    report(
      ['server.host', 'server.allow_unauthenticated'],
      'lets others in without authentication; if that is meant, set server.allow_unauthenticated to true',
    );
}

function checkDlq({ dlq, kafka }: Settings, { report }: Check): void {
  // With a shorter lease two processes could publish the same message.
  if (dlq.retryLeaseMs <= kafka.publishTimeoutMs)
    report(['dlq.retry_lease', 'kafka.publish_timeout'], 'must be longer than kafka.publish_timeout');
  if (dlq.archive.purgeDays < dlq.archive.retentionDays)
    report(
      ['dlq.archive.purge_days', 'dlq.archive.retention_days'],
      'must not be less than dlq.archive.retention_days',
    );
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
