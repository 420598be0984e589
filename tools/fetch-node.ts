import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const fetchTimeoutMs = 300_000;

/**
 * The executable of that version of Node, fetched from the npm registry when the cache does not have it. It appears by a
 * rename, so it is complete whenever it exists.
 */
export async function fetchNode(version: string): Promise<string> {
  const cache = process.env['REDRIVE_CACHE_DIR'] ?? join(homedir(), '.cache', 'redrive');
  const node = join(cache, `node-${version}`);
  if (existsSync(node)) return node;
  await mkdir(cache, { recursive: true });
  const partial = await mkdtemp(`${node}.partial-`);
  try {
    const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
    const args = ['install', '--prefix', partial, '--ignore-scripts', '--no-audit', '--no-fund', '--no-save'];
    await promisify(execFile)('npm', [...args, `${name}@${version}`], { timeout: fetchTimeoutMs });
    const binary = process.platform === 'win32' ? 'node.exe' : 'node';
    await rename(join(partial, 'node_modules', name, 'bin', binary), node);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  return node;
}
