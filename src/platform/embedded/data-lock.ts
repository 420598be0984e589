import { chmodSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { AppError } from '../../kernel/errors.ts';

const SQLITE_BUSY = 5;

/**
 * Locks a data folder until it is released or this process ends. Node has no file locks; SQLite uses those of the
 * operating system, which end with the process, so there are no stale locks. Nothing else may open the file: closing it
 * would release the lock.
 */
export function lockDataFolder(lockFile: string, folder: string): { release(): void } {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(lockFile);
    // An account that can read the file could lock it.
    chmodSync(lockFile, 0o600);
    lock.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    lock?.close();
    if ((cause as { errcode?: number }).errcode === SQLITE_BUSY) {
      throw new AppError(
        'SYS_EMBEDDED_IN_USE',
        'conflict',
        `The database in ${folder} is in use by another Redrive that is running. Stop that one, or choose another folder with --data-dir.`,
        { cause },
      );
    }
    throw new AppError(
      'SYS_EMBEDDED_DATA_UNREACHABLE',
      'unavailable',
      `The data folder ${folder} cannot be locked by this user. Check who owns it, or choose another folder with --data-dir.`,
      { cause },
    );
  }
  const held = lock;
  return { release: () => held.close() };
}
