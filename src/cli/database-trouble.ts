import type { DatabaseConfig } from '../config/resolve-database.ts';
import { codeOf, messageOf } from '../kernel/errors.ts';

/** What is wrong, and what to do about it. */
export type Trouble = Readonly<{ found: string; advice: string }>;

type Server = Extract<DatabaseConfig, { mode: 'server' }>;

/** Where a connection leads, without its password. */
export function describeServer({
  host,
  port,
  name,
  user,
}: Pick<Server, 'host' | 'port' | 'name' | 'user'>): string {
  return `${host}:${port}, database ${name}, user ${user}`;
}

/** Why no connection to the database came about; null when the error is about something else. */
export function databaseTrouble(error: unknown, server: Server): Trouble | null {
  return networkTrouble(error, server) ?? tlsTrouble(error) ?? entryTrouble(error, server);
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
      return { found: `the host ${host} is not known`, advice: 'correct database.host, or the DNS' };
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return unanswered(at);
    case 'ECONNRESET':
      return {
        found: `${at} closed the connection`,
        advice: 'check that PostgreSQL, or its pooler, runs there',
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
    advice: 'check database.host, and the network and firewalls between',
  };
}

function tlsTrouble(error: unknown): Trouble | null {
  const message = messageOf(error);
  if (message.includes('does not support SSL'))
    return {
      found: 'the server offers no TLS',
      advice: 'turn TLS on there, or set database.ssl_mode to disable',
    };
  const code = codeOf(error) ?? '';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return {
      found: `the server's certificate is for another name: ${message}`,
      advice: 'use the name of the certificate in database.host, or set database.ssl_mode to verify-ca',
    };
  if (!/CERT|SIGNED|UNABLE_TO_|ERR_TLS/.test(code)) return null;
  return {
    found: `the server's certificate is not trusted: ${message}`,
    advice: "name the file with its authority's certificate in database.ssl_ca",
  };
}

/** The server answered and let us not in. */
function entryTrouble(error: unknown, { name, user }: Server): Trouble | null {
  const message = messageOf(error);
  if (message.includes('unsupported startup parameter'))
    return {
      found: `the pooler refuses a setting of ours: ${message}`,
      advice: 'add statement_timeout to ignore_startup_parameters of PgBouncer',
    };
  if (message.includes('client password must be'))
    return { found: `user ${user} needs a password and none is set`, advice: 'set database.password' };
  switch (codeOf(error) ?? '') {
    case '28P01':
      return {
        found: `there is no user ${user}, or its password is another one`,
        advice: 'correct database.password or database.user',
      };
    case '28000':
      return {
        found: `user ${user} is not let in: ${message}`,
        advice: message.includes('no encryption')
          ? 'set database.ssl_mode to require or better: the server may let users in over TLS only'
          : 'make the user (CREATE ROLE … LOGIN) and let it in in pg_hba.conf',
      };
    case '3D000':
      return {
        found: `there is no database ${name}`,
        advice: `make it: CREATE DATABASE "${name}" OWNER "${user}"`,
      };
    case '42501':
      return {
        found: `user ${user} lacks a right: ${message}`,
        advice: `GRANT it, or let ${user} own the database`,
      };
    case '53300':
      return {
        found: message,
        advice: 'lower database.max_open_conns of the replicas, or raise max_connections',
      };
    case '57P03':
      return { found: message, advice: 'wait until PostgreSQL has started' };
    default:
      return null;
  }
}
