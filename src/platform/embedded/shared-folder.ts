import { chmod, lstat, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppError } from '../../kernel/errors.ts';

/**
 * A folder that every account can enter and only we can change: for binaries, and as root for data, that PostgreSQL's
 * account cannot reach. Root uses /var/lib/redrive, which survives a reboot. Other users (who need it only if the
 * package's install script did not run), and root with a read-only /var/lib, use a temporary folder.
 */
export async function openSharedFolder(): Promise<string> {
  const uid = process.getuid?.() ?? 0;
  if (uid === 0 && process.platform !== 'win32') {
    const folder = await prepare('/var/lib/redrive').catch(() => undefined);
    if (folder !== undefined) return folder;
  }
  return prepare(join(tmpdir(), `redrive-${uid}`));
}

async function prepare(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const found = await lstat(folder);
  const isOurs = process.getuid === undefined || found.uid === process.getuid();
  // Another user could have created this folder first, with their own binaries.
  if (!found.isDirectory() || !isOurs) {
    throw new AppError(
      'SYS_EMBEDDED_UNAVAILABLE',
      'unavailable',
      `${folder} belongs to somebody else, so the embedded PostgreSQL does not trust it. Remove it, or set DATABASE_URL to a PostgreSQL of your own.`,
    );
  }
  await chmod(folder, 0o755);
  return folder;
}
