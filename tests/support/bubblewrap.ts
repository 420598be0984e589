import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { copyFile, link, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { ImageTree } from '../../tools/image/build-image-tree.ts';
import type { LogLine } from './redrive-process.ts';

const missing = whyNot();

if (missing !== undefined) {
  process.stderr.write(`\n*** THE TESTS OF THE IMAGE ARE SKIPPED: ${missing} ***\n\n`);
  if (process.env['CI'] === 'true') throw new Error(missing);
}

/** Options for tests that run the image without a container engine. */
export const needsBubblewrap = missing === undefined ? {} : { skip: missing };

function whyNot(): string | undefined {
  if (process.platform !== 'linux') return 'bubblewrap runs on Linux only';
  const { status, error, stderr } = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', 'true']);
  if (error !== undefined) return 'bubblewrap is not installed (Debian: apt-get install bubblewrap)';
  return status === 0 ? undefined : `bubblewrap cannot make a sandbox here: ${stderr.toString().trim()}`;
}

export type Container = Readonly<{
  log(): readonly LogLine[];
  /** Resolves with the first log line of this message. */
  logged(msg: string): Promise<LogLine>;
  /** The main process as this machine sees it; `/proc/<pid>/root` is its file system. */
  pid: number;
  kill(signal: NodeJS.Signals): void;
  ended: Promise<Readonly<{ code: number | null; err: string }>>;
}>;

export type ContainerOptions = Readonly<{
  /** Instead of the image's own command. */
  command?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** Files to mount read-only, by their paths in the container. */
  mounts?: Readonly<Record<string, string>>;
}>;

/**
 * Runs the image as Kubernetes does with the chart: as process 1 of its own, with the image's account, a read-only root
 * without a shell, an empty /tmp in memory, and no privileges. The network is this machine's.
 */
export async function runImage(image: ImageTree, options: ContainerOptions = {}): Promise<Container> {
  const [program = '', ...args] = [...image.entrypoint, ...(options.command ?? image.command)];
  await provideNode(image, program);
  const env = { ...image.env, ...options.env };
  // The sandbox is made by the image's account itself where we may become it: files are then checked against it.
  const account = process.getuid?.() === 0 ? { uid: image.user, gid: image.user } : {};
  const child = spawn('bwrap', [...sandboxOf(image, options.mounts ?? {}), program, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    cwd: '/',
    ...account,
  });
  const [, stdout, stderr, info] = child.stdio as readonly (Readable | null)[];
  assert.ok(stdout && stderr && info);
  const ended = Promise.all([once(child, 'exit'), text(stderr)]).then(([[code], err]) => ({
    code: code as number | null,
    err,
  }));
  const lines: LogLine[] = [];
  const waiting = new Map<string, (line: LogLine) => void>();
  createInterface({ input: stdout }).on('line', (line) => {
    const entry = JSON.parse(line) as LogLine;
    lines.push(entry);
    waiting.get(entry.msg)?.(entry);
  });
  const pid = (JSON.parse(await text(info)) as { 'child-pid': number })['child-pid'];
  return {
    pid,
    log: () => lines,
    logged(msg) {
      const known = lines.find((line) => line.msg === msg);
      if (known !== undefined) return Promise.resolve(known);
      const { promise, resolve, reject } = Promise.withResolvers<LogLine>();
      waiting.set(msg, resolve);
      const failAtItsEnd = ({ code, err }: Awaited<typeof ended>): void =>
        reject(new Error(`ended with ${code} before it logged "${msg}": ${err}${JSON.stringify(lines)}`));
      void ended.then(failAtItsEnd);
      return promise;
    },
    kill(signal) {
      // The process may have ended already.
      if (child.exitCode === null) process.kill(pid, signal);
    },
    ended,
  };
}

/** The base image: Node.js and the libraries that it needs, and nothing else. */
function sandboxOf(image: ImageTree, mounts: Readonly<Record<string, string>>): readonly string[] {
  const { user } = image;
  const layers = readdirSync(image.folder).flatMap((name) => [
    '--ro-bind',
    join(image.folder, name),
    `/${name}`,
  ]);
  const more = Object.entries(mounts).flatMap(([target, source]) => ['--ro-bind', source, target]);
  return [
    `--unshare-user --uid ${user} --gid ${user} --cap-drop ALL`.split(' '),
    '--unshare-pid --as-pid-1 --unshare-ipc --unshare-uts --die-with-parent --info-fd 3'.split(' '),
    layers,
    '--ro-bind /usr/lib /usr/lib --symlink usr/lib /lib --ro-bind-try /lib64 /lib64'.split(' '),
    '--proc /proc --dev /dev --tmpfs /tmp'.split(' '),
    more,
    ['--remount-ro', '/', '--chdir', image.workDir],
  ].flat();
}

/** A hard link where possible: the program is large. */
async function provideNode(image: ImageTree, path: string): Promise<void> {
  const target = join(image.folder, path);
  await mkdir(join(target, '..'), { recursive: true });
  await link(process.execPath, target).catch((error: NodeJS.ErrnoException) =>
    error.code === 'EEXIST' ? undefined : copyFile(process.execPath, target),
  );
}
