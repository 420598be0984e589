import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import { UsageError } from '../exit-code.ts';
import type { Terminal } from '../terminal.ts';
import { createApiClient, type ApiClient } from './api-client.ts';
import { tokenOfLogin } from './login-token.ts';
import { openStoredLogins } from './stored-logins.ts';

/** Options of every command that calls a running server. */
export type ApiArgs = Readonly<{ url?: string; actor?: string; json?: boolean }>;

const defaultUrl = 'http://127.0.0.1:8080';

export function urlOption(command: Command): Command {
  return command.option('--url <url>', `the server's URL (env: REDRIVE_URL; default: ${defaultUrl})`);
}

export function withApiOptions(command: Command): Command {
  return urlOption(command.optionsGroup('Server and output:'))
    .option('--actor <name>', 'name for the audit log (default: user@host)')
    .option('--json', "print the API's JSON answer unchanged");
}

export function apiClientFor(terminal: Terminal, args: ApiArgs): ApiClient {
  const { env } = terminal;
  const url = serverUrl(env, args);
  const given = tokenOf(env);
  return createApiClient({
    url,
    actor: args.actor ?? ownName(env),
    token: async () => given ?? tokenOfLogin(openStoredLogins(env), url),
  });
}

/** Without query and fragment. */
export function serverUrl(env: NodeJS.ProcessEnv, args: ApiArgs): URL {
  // An empty variable counts as unset, as in the configuration.
  const text = args.url ?? (env['REDRIVE_URL'] || defaultUrl);
  const source = args.url === undefined ? 'REDRIVE_URL' : '--url';
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new UsageError(`${source} is not an http:// or https:// URL, such as ${defaultUrl}`);
  url.search = '';
  url.hash = '';
  return url;
}

/** A token or a key that counts instead of a login. From the environment only: arguments can be read by every process of the machine. */
export function tokenOf(env: NodeJS.ProcessEnv): string | undefined {
  const given = ['REDRIVE_TOKEN', 'REDRIVE_API_KEY'].filter((name) => (env[name] ?? '') !== '');
  const [name, other] = given;
  if (name === undefined) return undefined;
  if (other !== undefined) throw new UsageError(`${name} and ${other} are both set: unset one of them`);
  const token = env[name] ?? '';
  if (!/^[!-~]+$/.test(token)) throw new UsageError(`${name} must be one token without spaces`);
  return token;
}

function ownName(env: NodeJS.ProcessEnv): string {
  return `${env['USER'] || env['USERNAME'] || accountName()}@${hostname()}`;
}

/** A container's user may have no name. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
