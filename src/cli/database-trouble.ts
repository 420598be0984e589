import type { DatabaseConfig } from '../config/resolve/resolve-database.ts';
import { codeOf, messageOf } from '../kernel/errors.ts';

/** What is wrong, and what to do. */
export type Trouble = Readonly<{ found: string; advice: string }>;

type Server = Extract<DatabaseConfig, { mode: 'server' }>;

/** The connection's target, without the password. */
export function describeServer({
  host,
  port,
  name,
  user,
}: Pick<Server, 'host' | 'port' | 'name' | 'user'>): string {
  return `${host}:${port}, database ${name}, user ${user}`;
}

/** Why connecting failed; null if the error has another cause. */
export function databaseTrouble(error: unknown, server: Server): Trouble | null {
  return networkTrouble(error, server) ?? tlsTrouble(error) ?? loginTrouble(error, server);
}

function networkTrouble(error: unknown, { host, port }: Server): Trouble | null {
  const at = `${host}:${port}`;
  switch (codeOf(error) ?? '') {
    case 'ECONNREFUSED':
    case 'ENOENT':
      return {
        found: `nothing listens at ${at}`,
        advice: 'start PostgreSQL, or correct database.host and database.port',
      };
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return { found: `unknown host ${host}`, advice: 'correct database.host, or the DNS' };
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return unanswered(at);
    case 'ECONNRESET':
      return {
        found: `${at} closed the connection`,
        advice: 'check that PostgreSQL or its pooler is running there',
      };
    default:
      return /timeout expired|timeout exceeded when trying to connect/.test(messageOf(error))
        ? unanswered(at)
        : null;
  }
}

function unanswered(at: string): Trouble {
  return {
    found: `no answer from ${at}`,
    advice: 'check database.host, the network and firewalls',
  };
}

function tlsTrouble(error: unknown): Trouble | null {
  const message = messageOf(error);
  if (message.includes('does not support SSL'))
    return {
      found: 'the server does not support TLS',
      advice: 'enable TLS on the server, or set database.ssl_mode to disable',
    };
  const code = codeOf(error) ?? '';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return {
      found: `the server's certificate is for another name: ${message}`,
      advice: 'set database.host to the name in the certificate, or set database.ssl_mode to verify-ca',
    };
  if (!/CERT|SIGNED|UNABLE_TO_|ERR_TLS/.test(code)) return null;
  return {
    found: `the server's certificate is not trusted: ${message}`,
    advice: 'set database.ssl_root_cert to the file with the CA certificate',
  };
}

/** The server answered but rejected the login. */
function loginTrouble(error: unknown, { name, user }: Server): Trouble | null {
  const message = messageOf(error);
  if (message.includes('unsupported startup parameter'))
    return {
      found: `the pooler rejects a startup parameter: ${message}`,
      advice: "add statement_timeout to PgBouncer's ignore_startup_parameters",
    };
  if (message.includes('client password must be'))
    return { found: `user ${user} needs a password, but none is set`, advice: 'set database.password' };
  switch (codeOf(error) ?? '') {
    case '28P01':
      return {
        found: `unknown user ${user}, or wrong password`,
        advice: 'correct database.password or database.user',
      };
    case '28000':
      return {
        found: `login of user ${user} was rejected: ${message}`,
        advice: message.includes('no encryption')
          ? 'set database.ssl_mode to require or stricter: the server may require TLS'
          : 'create the user (CREATE ROLE … LOGIN) and allow it in pg_hba.conf',
      };
    case '3D000':
      return {
        found: `database ${name} does not exist`,
        advice: `create it: CREATE DATABASE "${name}" OWNER "${user}"`,
      };
    case '42501':
      return {
        found: `user ${user} lacks a privilege: ${message}`,
        advice: 'run `redrive doctor`: it prints the missing GRANT statements',
      };
    case '53300':
      return {
        found: message,
        advice: "lower the replicas' database.max_open_conns, or raise max_connections",
      };
    case '57P03':
      return { found: message, advice: 'wait until PostgreSQL has started' };
    default:
      return null;
  }
}
