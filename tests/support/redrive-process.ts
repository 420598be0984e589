import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { childEnv } from './child-env.ts';

/** The program as a person runs it: each command is a process of its own. */
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export type LogLine = Readonly<Record<string, unknown> & { level: string; msg: string }>;

export type ServerProcess = Readonly<{
  url: string;
  /** What it has logged so far. */
  log(): readonly LogLine[];
  /** SIGTERM; resolves with the exit code and how long the stop took. */
  stop(): Promise<Readonly<{ code: number | null; tookMs: number }>>;
  /** SIGKILL. */
  kill(): Promise<void>;
}>;

export type Ended = Readonly<{ code: number | null; out: string; err: string }>;

type Env = Readonly<Record<string, string>>;

/** Of this process's environment only what a program needs to run: the test run's own settings stay out. */
const environment = (env: Env): Env => ({ ...childEnv, USER: 'hanako', ...env });

export type ServerProcessOptions = Readonly<{
  args?: readonly string[];
  /** The log message, with a URL, at which it counts as started. */
  upTo?: string;
}>;

/** `redrive serve` on a free port; fails with what it said where it ends before it is ready. */
export async function startServerProcess(
  env: Env,
  { args = ['serve', '--port', '0'], upTo = 'redrive is ready' }: ServerProcessOptions = {},
): Promise<ServerProcess> {
  const child = spawn(process.execPath, [main, ...args], {
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  const lines: LogLine[] = [];
  const said = text(child.stderr);
  const ready = Promise.withResolvers<string>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const entry = JSON.parse(line) as LogLine;
    lines.push(entry);
    if (entry.msg === upTo) ready.resolve(String(entry['url']));
  });
  const failAtItsEnd = async (): Promise<void> => {
    const [code] = await ended;
    const logged = lines.map(({ msg }) => msg).join('\n');
    ready.reject(new Error(`the server ended with ${code}: ${await said}\n${logged}`));
  };
  void failAtItsEnd();
  return {
    url: await ready.promise,
    log: () => lines,
    async stop() {
      const begin = performance.now();
      child.kill('SIGTERM');
      const [code] = await ended;
      return { code, tookMs: performance.now() - begin };
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Runs one command to its end. Its standard input is no terminal. */
export async function runRedrive(args: readonly string[], env: Env = {}): Promise<Ended> {
  const child = spawn(process.execPath, [main, ...args], {
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, out, err };
}
