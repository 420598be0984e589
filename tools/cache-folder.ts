import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/** Where programs that tests need are kept between runs. */
export const cacheFolder = (name: string): string =>
  join(process.env['REDRIVE_CACHE_DIR'] ?? join(homedir(), '.cache', 'redrive'), name);

/** A folder is the lock, because making one is atomic; the pid inside tells a lock whose owner died. */
export async function lockFolder(path: string, withinMs: number): Promise<() => Promise<void>> {
  const giveUpAt = performance.now() + withinMs;
  while (performance.now() < giveUpAt) {
    try {
      await mkdir(path);
      await writeFile(join(path, 'pid'), String(process.pid));
      return () => rm(path, { recursive: true, force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    await wait(200);
    if (await isAbandoned(path)) await rm(path, { recursive: true, force: true });
  }
  throw new Error(`another process has held ${path} for too long`);
}

async function isAbandoned(path: string): Promise<boolean> {
  const pid = Number(await readFile(join(path, 'pid'), 'utf8').catch(() => ''));
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
