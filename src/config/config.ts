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

import { startCheck } from './check.ts';
import { ConfigError } from './config-error.ts';
import { isMap } from './formats/value.ts';
import { fromText } from './from-text.ts';
import { environmentLayer } from './layers/environment-layer.ts';
import { mergeLayers, type Layer } from './layers/merge-layers.ts';
import { namedFilesLayer, overrideWarnings, secretLayer } from './layers/secret-layer.ts';
import { readYamlLayer } from './layers/yaml-layer.ts';
import { readSettings } from './read-settings.ts';
import { reasonAgainst, type Node } from './reason-against.ts';
import { checkMetricsPort } from './resolve/check-metrics-port.ts';
import { resolveAuth, type AuthConfig } from './resolve/resolve-auth.ts';
import { resolveDatabase, type DatabaseConfig } from './resolve/resolve-database.ts';
import { resolveDlq, type DlqConfig } from './resolve/resolve-dlq.ts';
import { resolveJobs, type JobsConfig } from './resolve/resolve-jobs.ts';
import { resolveKafka, type KafkaConfig } from './resolve/resolve-kafka.ts';
import { resolveNotify, type NotifierConfig } from './resolve/resolve-notify.ts';
import { resolveOutbox, type OutboxConfig } from './resolve/resolve-outbox.ts';
import { resolveProtect, type ProtectConfig } from './resolve/resolve-protect.ts';
import { resolveServices, type ServiceConfig } from './resolve/resolve-services.ts';
import { keysIn } from './schema-keys.ts';
import { schema, type Settings } from './schema.ts';

/** Deeply frozen. Secrets are redacted in logs. */
export type Config = Omit<
  Settings,
  'app' | 'auth' | 'database' | 'kafka' | 'dlq' | 'protect' | 'outbox' | 'jobs' | 'notify' | 'services'
> &
  Readonly<{
    app: Settings['app'] & Readonly<{ version: string }>;
    auth: AuthConfig;
    database: DatabaseConfig;
    kafka: KafkaConfig;
    dlq: DlqConfig;
    protect: ProtectConfig;
    outbox: OutboxConfig;
    jobs: JobsConfig;
    services: readonly ServiceConfig[];
    notify: readonly NotifierConfig[];
    /** Sources of the values that are not defaults, by path: `{ "server.port": "--port" }`. */
    sources: Readonly<Record<string, string>>;
    /** Files that values were read from; relative ones to the working directory. */
    secretFiles: readonly string[];
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
  const known = keysIn(schema);
  const environment = environmentLayer(env, known);
  const written = readFiles(argv.configPath ?? env['CONFIG_PATH'], environment);
  const { given: naming } = mergeLayers([...written, environment], schema);
  const files = [...written, secretLayer(secretsDir, known), namedFilesLayer(naming, known)];
  const { tree: named } = mergeLayers([...files, environment], schema);
  const layers = [...files, environmentLayer(env, keysIn(schema, named)), optionsLayer(argv)];
  const { tree, given } = mergeLayers(layers, schema);
  const problems = layers.flatMap((layer) => layer.problems);
  const warnings = [...layers.flatMap((layer) => layer.warnings), ...overrideWarnings(written, given)];

  const values = readSettings(tree, given, problems);
  const check = startCheck(given, problems, warnings);
  checkMetricsPort(values.server, check);
  const auth = resolveAuth(values, check);
  const kafka = resolveKafka(values.kafka, check);
  const outbox = resolveOutbox(values.outbox, kafka, check);
  const config: Config = {
    ...values,
    app: { ...values.app, version: values.app.version ?? packageVersion() },
    server: { ...values.server, allowUnauthenticated: auth.mode === 'none' },
    auth,
    database: resolveDatabase(values.database, check),
    kafka,
    dlq: resolveDlq(values.dlq, kafka, check),
    protect: resolveProtect(values.protect, check),
    outbox,
    jobs: resolveJobs(values.jobs, check),
    services: resolveServices(values.services, values.saga, check),
    notify: resolveNotify(values.notify, outbox, check),
    sources: Object.fromEntries(
      [...given].flatMap(([path, { value, source }]) => (isMap(value) ? [] : [[path, source]])),
    ),
    secretFiles: [...new Set([...given.values()].flatMap(({ file }) => file ?? []))],
    warnings,
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return deepFreeze(config);
}

/** The named file and the environment's file; the environment comes from the variable or the first file. */
function readFiles(configPath: string | undefined, environment: Layer): readonly Layer[] {
  if (!configPath) return [];
  const base = readYamlLayer(configPath);
  if (!base) return [{ entries: [], problems: [{ path: configPath, reason: 'no such file' }], warnings: [] }];
  const node: Node = schema.properties.app.properties.environment;
  const environmentOf = (layers: readonly Layer[]): unknown =>
    mergeLayers([...layers, environment], schema).given.get('app.environment')?.value ?? node.default;
  const chosen = environmentOf([base]);
  // An invalid name is reported later, and never becomes part of a path.
  if (reasonAgainst(node, chosen) !== undefined) return [base];
  const file = join(dirname(configPath), `config.${String(chosen)}.yaml`);
  const second = readYamlLayer(file);
  if (!second) return [base];
  if (environmentOf([base, second]) === chosen) return [base, second];
  const problem = {
    path: 'app.environment',
    reason: 'must not differ from the environment that chose this file',
    source: file,
  };
  return [base, { ...second, problems: [...second.problems, problem] }];
}

function optionsLayer({ host, port, dataDir }: NonNullable<ConfigOptions['argv']>): Layer {
  const options = [
    { keys: ['server', 'host'], value: host, source: '--host' },
    {
      keys: ['server', 'port'],
      value: typeof port === 'string' ? fromText(schema.properties.server.properties.port, port) : port,
      source: '--port',
    },
    { keys: ['database', 'data_dir'], value: dataDir, source: '--data-dir' },
  ];
  return { entries: options.filter(({ value }) => value !== undefined), problems: [], warnings: [] };
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
