import { chmod, lstat, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppError } from '../../kernel/errors.ts';

/**
 * A folder that every account can enter and only we can change: for the binaries, and as root for the data, when
 * PostgreSQL's account cannot reach where they are. Root uses /var/lib/redrive, which outlives a reboot; an
 * ordinary user (who needs it only where the package's install script did not run), or root on a machine with
 * a read-only /var/lib, uses a folder under the temporary one.
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
  // Somebody else could have put a folder of this name there first, with binaries of their own in it.
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
