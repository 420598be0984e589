import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import { UsageError } from '../exit-code.ts';
import type { Terminal } from '../terminal.ts';
import { createApiClient, type ApiClient } from './api-client.ts';

/** The options of every command that talks to a running server. */
export type ApiArgs = Readonly<{ url?: string; actor?: string; json?: boolean }>;

const defaultUrl = 'http://127.0.0.1:8080';

export function withApiOptions(command: Command): Command {
  return command
    .option('--url <url>', `the server (also REDRIVE_URL; default ${defaultUrl})`)
    .option('--actor <name>', 'who acts, for the history (default: you@this-machine)')
    .option('--json', "print the API's JSON as it comes");
}

export function apiClientFor(terminal: Terminal, args: ApiArgs, root: readonly string[]): ApiClient {
  return createApiClient({
    url: serverUrl(terminal.env, args),
    root,
    actor: args.actor ?? ownName(terminal.env),
  });
}

function serverUrl(env: NodeJS.ProcessEnv, args: ApiArgs): URL {
  // An empty variable counts as not set, as in the configuration.
  const text = args.url ?? (env['REDRIVE_URL'] || defaultUrl);
  const source = args.url === undefined ? 'REDRIVE_URL' : '--url';
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new UsageError(`${source} is not a URL with http:// or https://, such as ${defaultUrl}`);
  url.search = '';
  url.hash = '';
  return url;
}

function ownName(env: NodeJS.ProcessEnv): string {
  return `${env['USER'] || env['USERNAME'] || accountName()}@${hostname()}`;
}

/** In a container the user may have no name at all. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
