import type { Check } from '../check.ts';
import { parseDatabaseUrl, type DatabaseUrl } from './database-url.ts';
import { reasonAgainst, type Node } from '../reason-against.ts';
import { schema, type Settings } from '../schema.ts';
import { Secret, type StoredLogin } from '../layers/secret.ts';

/** Where a database is and how to enter it. */
export type DatabaseTarget = Readonly<{
  host: string;
  port: number;
  name: string;
  sslMode: Settings['database']['sslMode'];
  sslRootCert: string | undefined;
}> &
  StoredLogin;

type Common = Readonly<
  Pick<
    Settings['database'],
    | 'maxOpenConns'
    | 'maxIdleConns'
    | 'connMaxLifetimeMs'
    | 'statementTimeoutMs'
    | 'connectTimeoutMs'
    | 'migrate'
    | 'wake'
  >
>;

export type DatabaseConfig =
  /** Nobody named a database: a real PostgreSQL of our own, in the data folder. */
  | (Common & Readonly<{ mode: 'embedded'; dataDir: string }>)
  /** `direct` leads past a pooler, for what needs a session of its own. */
  | (Common & DatabaseTarget & Readonly<{ mode: 'server'; direct: DatabaseTarget | undefined }>);

export function resolveDatabase(settings: Settings['database'], check: Check): DatabaseConfig {
  const { connMaxLifetimeMs, statementTimeoutMs, connectTimeoutMs, migrate, wake, maxOpenConns } = settings;
  // As in the pools that know both keys: more idle connections than connections are no contradiction.
  const maxIdleConns = Math.min(settings.maxIdleConns, maxOpenConns);
  const common = {
    maxOpenConns,
    maxIdleConns,
    connMaxLifetimeMs,
    statementTimeoutMs,
    connectTimeoutMs,
    migrate,
    wake,
  };
  const target = resolveTarget(settings, check);
  const direct = settings.directUrl && readUrl('database.direct_url', settings.directUrl, check);
  if (target) {
    check.checkFile('database.ssl_root_cert', target.sslRootCert);
    check.checkLogin('database.user', target);
    return { mode: 'server', ...common, ...target, direct: direct && directTarget(direct, target, check) };
  }
  reportForgottenHost(check);
  return { mode: 'embedded', ...common, dataDir: settings.dataDir };
}

/** Of the URL and the keys for its parts, the one of the higher layer holds; in the same layer, the key. */
function resolveTarget(settings: Settings['database'], check: Check): DatabaseTarget | undefined {
  const url = settings.url && readUrl('database.url', settings.url, check);
  const rankOf = (key: string): number => check.given.get(`database.${key}`)?.rank ?? -1;
  const holds = (key: string, fromUrl: unknown): boolean =>
    fromUrl !== undefined && rankOf(key) < rankOf('url');
  const choose = <T>(key: string, own: T, fromUrl: T | undefined): T =>
    fromUrl !== undefined && holds(key, fromUrl) ? fromUrl : own;
  const fileOf = (key: string, fromUrl: unknown): string | undefined =>
    holds(key, fromUrl) ? undefined : check.given.get(`database.${key}`)?.file;

  const host = choose('host', settings.host, url?.host);
  if (host === undefined) return undefined;
  return {
    host,
    port: choose('port', settings.port, url?.port),
    name: choose('name', settings.name, url?.name),
    user: choose('user', settings.user, url?.user),
    userFile: fileOf('user', url?.user),
    password: choose('password', settings.password, secretOf(url)),
    passwordFile: fileOf('password', url?.password),
    sslMode: choose('ssl_mode', settings.sslMode, url && sslModeOf(url, 'database.url', check)),
    sslRootCert: choose('ssl_root_cert', settings.sslRootCert, url?.sslRootCert),
  };
}

/** What the direct URL leaves out is as for the other connections. */
function directTarget(url: DatabaseUrl, target: DatabaseTarget, check: Check): DatabaseTarget {
  return {
    host: url.host,
    port: url.port,
    name: url.name ?? target.name,
    user: url.user ?? target.user,
    userFile: url.user === undefined ? target.userFile : undefined,
    password: secretOf(url) ?? target.password,
    passwordFile: url.password === undefined ? target.passwordFile : undefined,
    sslMode: sslModeOf(url, 'database.direct_url', check) ?? target.sslMode,
    sslRootCert: url.sslRootCert ?? target.sslRootCert,
  };
}

function readUrl(path: string, url: Secret, check: Check): DatabaseUrl | undefined {
  const parsed = parseDatabaseUrl(url.reveal());
  if (!parsed.ok) {
    check.report([path], parsed.reason);
    return undefined;
  }
  if (parsed.value.hasOtherParameters)
    check.warn(`${path} has parameters that are ignored: only sslmode and sslrootcert are used`);
  return parsed.value;
}

function sslModeOf(url: DatabaseUrl, path: string, check: Check): DatabaseTarget['sslMode'] | undefined {
  if (url.sslMode === undefined) return undefined;
  const { ssl_mode } = schema.properties.database.properties;
  const reason = reasonAgainst(ssl_mode, url.sslMode);
  if (reason === undefined) return url.sslMode as DatabaseTarget['sslMode'];
  check.report([path], `its sslmode ${reason}`);
  return undefined;
}

const secretOf = (url: DatabaseUrl | undefined): Secret | undefined =>
  url?.password === undefined ? undefined : new Secret(url.password);

/** Whoever names a user or a password means a server: quietly using the embedded database would hide its data. */
function reportForgottenHost({ given, report }: Check): void {
  const connection = ['name', 'user', 'password', 'port', 'ssl_mode', 'ssl_root_cert', 'direct_url'] as const;
  const named = connection.find((key) => {
    const value = given.get(`database.${key}`)?.value;
    const node: Node = schema.properties.database.properties[key];
    return value !== undefined && value !== node.default;
  });
  if (named !== undefined && !given.has('database.url'))
    report(['database.host', `database.${named}`], `is missing, but database.${named} is set`);
}
