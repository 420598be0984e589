import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeOf } from '../../kernel/errors.ts';
import { hashSources } from './source-hash.ts';

/** In a package or an image, which have no sources of the console. */
const packed = fileURLToPath(new URL('../web/', import.meta.url));
const sources = fileURLToPath(new URL('../../../console/', import.meta.url));
const builds = fileURLToPath(new URL('../../../.cache/console/', import.meta.url));
/** A process that started with an older build reads it in its first seconds; a branch is often changed back the same day. */
const keptMs = 24 * 3_600_000;
const shownOutputLength = 4000;

export type BuildOptions = Readonly<{ signal?: AbortSignal; onBuild?: () => void }>;

/**
 * Returns the folder of the built console. Builds it in a child process unless these sources have been built before;
 * it is moved to its place by one rename, so that no process ever serves half of it.
 */
export async function buildConsole({ signal, onBuild = () => {} }: BuildOptions = {}): Promise<string> {
  if (await exists(packed)) return packed;
  if (!(await exists(sources))) throw new Error('this installation has no console');
  const target = join(builds, await hashSources(sources));
  if (await exists(target)) return target;
  onBuild();
  await mkdir(builds, { recursive: true });
  const folder = await mkdtemp(join(builds, 'new-'));
  try {
    await runBuild(folder, signal);
    await moveTo(folder, target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  await removeOld(target);
  return target;
}

/** The script runs on the Node of this process, whichever comes first in the path. */
async function runBuild(folder: string, signal: AbortSignal | undefined): Promise<void> {
  const child = spawn(process.execPath, [join(sources, 'tools/build.ts'), folder], {
    cwd: sources,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(signal === undefined ? {} : { signal }),
  });
  let said = '';
  const keep = (text: string): void => void (said = (said + text).slice(-shownOutputLength));
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`the build of the console ended with code ${code}: ${said.trim()}`);
}

/** Another process may have built the same sources meanwhile; then that build counts. */
async function moveTo(folder: string, target: string): Promise<void> {
  try {
    await rename(folder, target);
  } catch (error) {
    if (!['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(codeOf(error) ?? '') || !(await exists(target)))
      throw error;
  }
}

/** Servers that still run on an older build have read it when they started. */
async function removeOld(current: string): Promise<void> {
  for (const name of await readdir(builds)) {
    const path = join(builds, name);
    const age = Date.now() - ((await stat(path).catch(() => null))?.mtimeMs ?? Date.now());
    if (path !== current && age > keptMs) await rm(path, { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
