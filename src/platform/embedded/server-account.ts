import { execFile } from 'node:child_process';
import { access, constants, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { AppError } from '../../kernel/errors.ts';

const run = promisify(execFile);

/**
 * The account that PostgreSQL runs as. PostgreSQL does not run as root, so a root process uses an unprivileged account of
 * the machine; all others run it as themselves (`undefined`).
 */
export type ServerAccount = Readonly<{ uid: number; gid: number }> | undefined;

const CANDIDATES = ['postgres', '_postgres', 'nobody'] as const;

/** The owner of existing data; for new data the first candidate that exists on the machine. */
export async function chooseServerAccount(existingCluster: string): Promise<ServerAccount> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = await stat(existingCluster).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  for (const name of CANDIDATES) {
    const account = await lookUp(name);
    if (account !== undefined) return account;
  }
  throw new AppError(
    'SYS_EMBEDDED_UNAVAILABLE',
    'unavailable',
    `PostgreSQL does not run as root, and this machine has none of the accounts ${CANDIDATES.join(', ')} to run it as. ` +
      'Run Redrive as an ordinary user, or set DATABASE_URL to a PostgreSQL of your own.',
  );
}

/**
 * Whether the account can execute the file or enter the folder. Checked by a process that runs as that account, because
 * parent folders, access lists and noexec mounts count too.
 */
export async function canReach(account: ServerAccount, path: string): Promise<boolean> {
  if (account === undefined) {
    return access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
  }
  const { uid, gid } = account;
  return run('/bin/sh', ['-c', 'test -x "$0"', path], { uid, gid, cwd: '/' }).then(
    () => true,
    () => false,
  );
}

async function lookUp(name: string): Promise<ServerAccount> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
}
