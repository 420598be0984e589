import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { codeOf } from '../../kernel/errors.ts';
import { UsageError } from '../exit-code.ts';

/** What `redrive login` has got from the issuer of a server. */
export type StoredLogin = Readonly<{
  issuer: string;
  clientId: string;
  accessToken: string;
  /** Null: the login ends with the access token. */
  refreshToken: string | null;
  expiresAtMs: number;
}>;

/** The logins of this user, each for the URL of a server; a token is sent to no other one. */
export type StoredLogins = Readonly<{
  file: string;
  find(url: URL): StoredLogin | undefined;
  put(url: URL, login: StoredLogin): void;
  /** False if there was none. */
  remove(url: URL): boolean;
}>;

type Stored = Readonly<{ version: 1; servers: Readonly<Record<string, StoredLogin>> }>;

const nothing: Stored = { version: 1, servers: {} };
const ownerOnly = 0o600;
const othersMay = 0o077;

export function openStoredLogins(env: NodeJS.ProcessEnv): StoredLogins {
  const file = join(
    env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'),
    'redrive',
    'logins.json',
  );
  const write = (servers: Stored['servers']): void => writePrivately(file, { version: 1, servers });
  return {
    file,
    find: (url) => read(file).servers[keyOf(url)],
    put(url, login) {
      write({ ...read(file).servers, [keyOf(url)]: login });
    },
    remove(url) {
      const { [keyOf(url)]: removed, ...others } = read(file).servers;
      if (removed !== undefined) write(others);
      return removed !== undefined;
    },
  };
}

/** The same server, however its URL is written. */
function keyOf({ origin, pathname }: URL): string {
  return `${origin}${pathname.replace(/\/+$/, '')}`;
}

function read(file: string): Stored {
  let text: string;
  try {
    const { mode } = statSync(file);
    if (process.platform !== 'win32' && (mode & othersMay) !== 0)
      throw new UsageError(
        `${file} can be read by others, and holds tokens: chmod 600 it, or delete it and log in again`,
      );
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return nothing;
    throw error;
  }
  const stored = parse(text);
  if (stored === undefined) throw new UsageError(`${file} is damaged: delete it and log in again`);
  return stored;
}

function parse(text: string): Stored | undefined {
  try {
    const value = JSON.parse(text) as Partial<Stored> | null;
    return value?.version === 1 && typeof value.servers === 'object' ? (value as Stored) : undefined;
  } catch {
    return undefined;
  }
}

/** Nobody else can read it at any moment, and a crash leaves the old file or the new one. */
function writePrivately(file: string, stored: Stored): void {
  const fresh = `${file}.${process.pid}.new`;
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    writeFileSync(fresh, `${JSON.stringify(stored, null, 2)}\n`, { mode: ownerOnly, flag: 'wx' });
    chmodSync(fresh, ownerOnly);
    renameSync(fresh, file);
  } catch (error) {
    try {
      unlinkSync(fresh);
    } catch {
      // It was not made.
    }
    throw error;
  }
}
