import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cacheFolder, lockFolder } from '../cache-folder.ts';

const run = promisify(execFile);

/**
 * Programs of others that check what is in deploy/, built from the Go module proxy; sum.golang.org vouches for them. Each
 * is built once into the cache. `deploy` needs the newest Go of them.
 */
const TOOLS = {
  helm: { version: 'v3.22.0', source: 'helm.sh/helm/v3/cmd/helm' },
  'consul-template': { version: 'v0.41.1', source: 'github.com/hashicorp/consul-template' },
  'compose-check': { version: 'v2.16.2', source: null },
} as const;

export type GoTool = keyof typeof TOOLS;

const goTools = Object.keys(TOOLS) as readonly GoTool[];

const neededMinor = 26;
const buildWithinMs = 600_000;

export function goToolPath(tool: GoTool): string {
  return join(cacheFolder('go'), `${tool}-${TOOLS[tool].version}`, tool);
}

/** Why the tools cannot be built; undefined if they can, or have been. */
export async function whyNoGoTools(): Promise<string | undefined> {
  if (goTools.every((tool) => existsSync(goToolPath(tool)))) return undefined;
  try {
    const { stdout } = await run('go', ['version']);
    const minor = Number(/go1\.(\d+)/.exec(stdout)?.[1]);
    return minor >= neededMinor
      ? undefined
      : `Go 1.${neededMinor} or newer is needed, found ${stdout.trim()}`;
  } catch {
    return 'go is not installed';
  }
}

/** Builds what is missing. A tool appears by a rename, so it is complete whenever it exists. */
export async function buildGoTools(log: (line: string) => void): Promise<void> {
  const missing = (): readonly GoTool[] => goTools.filter((tool) => !existsSync(goToolPath(tool)));
  if (missing().length === 0) return;
  await mkdir(cacheFolder('go'), { recursive: true });
  const release = await lockFolder(join(cacheFolder('go'), 'build.lock'), buildWithinMs);
  try {
    for (const tool of missing()) {
      log(`building ${tool} ${TOOLS[tool].version}; this happens once on a machine`);
      await build(tool);
    }
  } finally {
    await release();
  }
}

async function build(tool: GoTool): Promise<void> {
  const { source, version } = TOOLS[tool];
  const target = goToolPath(tool);
  const partial = join(cacheFolder('go'), 'partial');
  await mkdir(partial, { recursive: true });
  await mkdir(join(target, '..'), { recursive: true });
  const flags = ['-trimpath', '-ldflags=-s -w'];
  const env = { ...process.env, GOFLAGS: '-p=2', CGO_ENABLED: '0', GOBIN: partial };
  const options = { env, timeout: buildWithinMs, maxBuffer: 16 * 1024 * 1024 };
  if (source !== null)
    await run('go', ['install', ...flags, `${source}@${version}`], { ...options, cwd: partial });
  else {
    const cwd = fileURLToPath(new URL(`${tool}/`, import.meta.url));
    await run('go', ['build', ...flags, '-o', join(partial, tool), '.'], { ...options, cwd });
  }
  await rename(join(partial, tool), target);
}
