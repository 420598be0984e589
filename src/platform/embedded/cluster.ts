import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AppError, codeOf, messageOf } from '../../kernel/errors.ts';
import type { DataHome } from './data-home.ts';
import type { NativeBinaries } from './native-binaries.ts';
import type { ServerAccount } from './server-account.ts';

const run = promisify(execFile);

/** The superuser of the embedded database; its random password is in the data folder. */
export const SUPERUSER = 'redrive';

/**
 * Creates the cluster if the data folder has none, checks its major version, and returns the superuser's password. A
 * cluster is created beside its place and renamed, so an interrupted first start leaves nothing incomplete.
 */
export async function ensureCluster(
  home: DataHome,
  binaries: NativeBinaries,
  options: Readonly<{ sync: boolean }>,
): Promise<string> {
  const version = await readClusterVersion(home.cluster);
  if (version === undefined) return createCluster(home, binaries, options.sync);
  if (version !== String(binaries.majorVersion)) {
    throw new AppError(
      'SYS_EMBEDDED_WRONG_VERSION',
      'conflict',
      `The database in ${home.folder} was written by PostgreSQL ${version}, and the embedded one is PostgreSQL ${binaries.majorVersion}. ` +
        'Choose another folder with --data-dir, or move the data over with pg_dump and a PostgreSQL of the old version.',
    );
  }
  return readPassword(home);
}

/** Runs a PostgreSQL program as the account, in English, without our environment and working folder. */
export function runAs(account: ServerAccount): Readonly<{ cwd: string; env: { LC_ALL: string } }> {
  return { cwd: '/', env: { LC_ALL: 'C' }, ...account };
}

async function readPassword(home: DataHome): Promise<string> {
  try {
    return (await readFile(home.passwordFile, 'utf8')).trim();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    throw new AppError(
      'SYS_EMBEDDED_DATA_UNREACHABLE',
      'unavailable',
      `The database in ${home.folder} is there, but its password file ${home.passwordFile} is not. Put it back, or choose another folder with --data-dir.`,
    );
  }
}

async function readClusterVersion(cluster: string): Promise<string | undefined> {
  try {
    return (await readFile(join(cluster, 'PG_VERSION'), 'utf8')).trim();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function createCluster(home: DataHome, binaries: NativeBinaries, sync: boolean): Promise<string> {
  const { account } = home;
  const password = randomBytes(24).toString('base64url');
  await rm(home.passwordFile, { force: true });
  await writeFile(home.passwordFile, `${password}\n`, { mode: 0o600 });
  const unfinished = `${home.cluster}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { mode: 0o700 });
  if (account !== undefined) {
    await chown(home.passwordFile, account.uid, account.gid);
    await chown(unfinished, account.uid, account.gid);
  }
  const initdb = join(binaries.folder, 'bin', 'initdb');
  const flags = [
    `--pgdata=${unfinished}`,
    `--username=${SUPERUSER}`,
    `--pwfile=${home.passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(sync ? [] : ['--no-sync']),
  ];
  try {
    await run(initdb, flags, runAs(account));
  } catch (cause) {
    throw new AppError(
      'SYS_EMBEDDED_START_FAILED',
      'unavailable',
      `The embedded PostgreSQL could not make its database in ${home.folder}: ${messageOf(cause)} ` +
        'Set DATABASE_URL to a PostgreSQL of your own if it does not run on this machine.',
      { cause },
    );
  }
  await rename(unfinished, home.cluster);
  return password;
}
