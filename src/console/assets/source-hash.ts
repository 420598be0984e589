import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

const isSource = (path: string): boolean =>
  /\.(tsx?|css|html|json)$/.test(path) && !/\.test\.tsx?$/.test(path) && !path.includes('node_modules');

/** Identifies the sources of the console: what is built from equal sources is equal. */
export async function hashSources(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, '/'))
    .filter(isSource)
    .toSorted();
  const hash = createHash('sha256');
  for (const path of paths) {
    const text = await readFile(join(folder, path));
    hash.update(`${path}\0${text.length}\0`).update(text);
  }
  return hash.digest('hex').slice(0, 16);
}
