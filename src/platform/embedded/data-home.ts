import { randomUUID } from 'node:crypto';
import {
  chmod,
  link,
  mkdir,
  readdir,
  readFile,
  realpath,
  rmdir,
  stat,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, codeOf } from '../../kernel/errors.ts';
import { canReach, chooseServerAccount, type ServerAccount } from './server-account.ts';

/**
 * The folder with everything of one embedded database: `cluster/` (PostgreSQL's own), `password`, `postgres.log` and
 * `lock`. It is the data folder, unless PostgreSQL's account cannot enter it (root, with the data folder under a home of
 * mode 700). Then it is a folder in the shared folder, and the file `moved-to` in the data folder has its path, so
 * deleting the data folder still resets the database.
 */
export type DataHome = Readonly<{
  folder: string;
  cluster: string;
  passwordFile: string;
  logFile: string;
  lockFile: string;
  account: ServerAccount;
}>;

const MOVED_TO = 'moved-to';

export async function openDataHome(
  dataDir: string,
  openSharedFolder: () => Promise<string>,
): Promise<DataHome> {
  await mkdir(dataDir, { recursive: true });
  const here = await realpath(dataDir);
  const moved = await readMovedTo(here);
  if (moved !== undefined) return describe(moved, await chooseServerAccount(join(moved, 'cluster')));

  const account = await chooseServerAccount(join(here, 'cluster'));
  if (account !== undefined) await openIfEmpty(here);
  if (await canReach(account, here)) return describe(here, account);
  if (await hasCluster(here)) {
    throw new AppError(
      'SYS_EMBEDDED_DATA_UNREACHABLE',
      'unavailable',
      `The owner (uid ${account?.uid}) of the database in ${here} cannot enter that folder any more. ` +
        'Give the folders above it execute permission, or choose another data folder.',
    );
  }
  return describe(await moveToShared(here, await openSharedFolder()), account);
}

function describe(folder: string, account: ServerAccount): DataHome {
  return {
    folder,
    cluster: join(folder, 'cluster'),
    passwordFile: join(folder, 'password'),
    logFile: join(folder, 'postgres.log'),
    lockFile: join(folder, 'lock'),
    account,
  };
}

/** An empty folder was created for us, often with mode 700: lets other accounts pass through, but not list it. */
async function openIfEmpty(folder: string): Promise<void> {
  const entries = await readdir(folder);
  if (entries.length === 0) await chmod(folder, (await stat(folder)).mode | 0o011);
}

async function readMovedTo(dataDir: string): Promise<string | undefined> {
  const note = await readFile(join(dataDir, MOVED_TO), 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (note === undefined) return undefined;
  const folder = note.trim();
  await mkdir(folder, { recursive: true });
  return folder;
}

/** If two processes move the same data folder at once, one writes `moved-to` and the other follows it. */
async function moveToShared(dataDir: string, sharedFolder: string): Promise<string> {
  const id = randomUUID();
  const folder = join(sharedFolder, `data-${id}`);
  await mkdir(folder);
  await chmod(folder, 0o755);
  const note = join(dataDir, `${MOVED_TO}.${id}`);
  await writeFile(note, `${folder}\n`);
  try {
    await link(note, join(dataDir, MOVED_TO));
    return folder;
  } catch (error) {
    await rmdir(folder);
    const theirs = await readMovedTo(dataDir);
    if (theirs === undefined) throw error;
    return theirs;
  } finally {
    await unlink(note);
  }
}

async function hasCluster(folder: string): Promise<boolean> {
  return stat(join(folder, 'cluster')).then(
    () => true,
    () => false,
  );
}
