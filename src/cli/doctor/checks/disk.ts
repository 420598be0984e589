import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Config } from '../../../config/config.ts';
import { ok, problem, skipped, warning, type Finding } from '../finding.ts';

const gibibyte = 1024 ** 3;
const warnBelow = 5 * gibibyte;
const failBelow = gibibyte;

/** Free space of the embedded PostgreSQL. That of a server is not visible from here. */
export async function examineDisk({ database }: Config): Promise<Finding> {
  if (database.mode === 'server')
    return skipped('disk', 'not visible from here; watch the free space of the database server');
  const { bavail, bsize } = await statfsOfExisting(resolve(database.dataDir));
  return judgeDisk(Number(bavail) * Number(bsize), database.dataDir);
}

export function judgeDisk(freeBytes: number, folder: string): Finding {
  const found = `${(freeBytes / gibibyte).toFixed(1)} GiB free for ${folder}`;
  const advice = 'free space, or move the folder with --data-dir: PostgreSQL stops when the disk is full';
  if (freeBytes < failBelow) return problem('disk', found, advice);
  return freeBytes < warnBelow ? warning('disk', found, advice) : ok('disk', found);
}

async function statfsOfExisting(folder: string): ReturnType<typeof statfs> {
  try {
    return await statfs(folder);
  } catch (error) {
    if (folder === dirname(folder)) throw error;
    return statfsOfExisting(dirname(folder));
  }
}
