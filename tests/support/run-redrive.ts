import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { childEnv } from './child-env.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

/** Runs the command line as a process of its own; of the environment only what it needs, and what is given. */
export async function runRedrive(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Readonly<{ code: number | null; out: string; err: string }>> {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...childEnv, USER: 'hanako', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, out, err };
}
