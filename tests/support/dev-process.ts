import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.ts';

/** `npm start` and other commands of the documents, as a reader runs them in the root folder of a clone. */

export const root = fileURLToPath(new URL('../../', import.meta.url));

export type DevProcess = Readonly<{
  url: string;
  /** From the line `export DATABASE_URL=…` that it prints. */
  databaseUrl: string;
  said(): string;
  stop(): Promise<void>;
}>;

/** A reader's shell: the Node of the machine, or the one that `npm ci` has installed. */
export const nodes: Readonly<Record<string, string>> = {
  'the Node of the machine': pathWithoutModules(),
  'the Node of the project': `${join(root, 'node_modules/node/bin')}${delimiter}${pathWithoutModules()}`,
};

/** npm adds folders of node_modules to the path of a script; a reader's shell has none of them. */
function pathWithoutModules(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return folders.filter((folder) => !/node_modules|node-gyp-bin/.test(folder)).join(delimiter);
}

/** The environment of a shell in which nobody has configured anything; npm's own variables stay out. */
export function readersEnv(
  path: string,
  given: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const kept = ['HOME', 'LANG', 'USER'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(kept), PATH: path, npm_config_update_notifier: 'false', ...given };
}

/** Runs `npm start` on a free port with a data folder of its own, and waits until it says that it is ready. */
export async function startDevProcess(path = pathWithoutModules()): Promise<DevProcess> {
  const dataDir = await mkdtemp(join(tmpdir(), 'redrive-dev-'));
  const child = spawn('npm', ['start'], {
    cwd: root,
    env: readersEnv(path, { SERVER_PORT: '0', DATABASE_DATA_DIR: dataDir }),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const said = outputOf(child);
  const stop = async (): Promise<void> => {
    await interrupt(child);
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const [url, databaseUrl] = await eventually(
      () => {
        const ready = /Redrive is ready: (\S+)\/\s[^]*export DATABASE_URL=(\S+)/.exec(said());
        if (ready === null) throw new Error(`npm start is not ready: ${said()}`);
        return [ready[1] ?? '', ready[2] ?? ''] as const;
      },
      { withinMs: 90_000 },
    );
    return { url, databaseUrl, said, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A command that runs until it is stopped, as in a terminal of its own. */
export function startCommand(
  command: string,
  env: Readonly<Record<string, string>>,
): Readonly<{ said(): string; stop(): Promise<void> }> {
  const child = spawn('sh', ['-c', command], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const said = outputOf(child);
  return { said, stop: () => interrupt(child) };
}

/** Ctrl-C: the whole process group gets it. Ends when all of them have closed their output. */
async function interrupt(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.stdout?.closed === true) return;
  const closed = once(child, 'close');
  process.kill(-child.pid, 'SIGINT');
  await closed;
}

/** Runs a command to its end. */
export async function runCommand(
  command: string,
  env: Readonly<Record<string, string>>,
): Promise<Readonly<{ code: number | null; said: string }>> {
  const child = spawn('sh', ['-c', command], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = outputOf(child);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, said: said() };
}

function outputOf(child: ChildProcess): () => string {
  let said = '';
  const add = (text: string): void => void (said += text);
  child.stdout?.setEncoding('utf8').on('data', add);
  child.stderr?.setEncoding('utf8').on('data', add);
  return () => said;
}
