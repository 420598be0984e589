import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { JobEvent, JobOutcome } from '../../../src/sdk/index.ts';
import { childEnv } from '../../support/child-env.ts';
import { guardScript } from './start-replica.ts';
import { until } from './until.ts';

const program = fileURLToPath(new URL('../jobs-worker.ts', import.meta.url));

/** A service that handles jobs, seen from outside. */
export type WorkerProcess = Readonly<{
  pid: number;
  /** How many jobs it has told of that ended like this. */
  count(outcome: JobOutcome): number;
  kill(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Resolves when it has ended by itself, with its exit code or the signal that ended it. */
  died(withinMs?: number): Promise<number | NodeJS.Signals | null>;
  /** SIGTERM; resolves with the exit code. */
  terminate(): Promise<number | null>;
  log(): string;
}>;

export async function startWorker(
  env: Readonly<Record<string, string>>,
  nodeOptions: readonly string[] = [],
): Promise<WorkerProcess> {
  const child = spawn(process.execPath, [...nodeOptions, program], {
    env: { ...childEnv, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  assert.ok(pid !== undefined);
  const guard = spawn('sh', ['-c', guardScript, 'guard', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const exit = once(child, 'exit').then(() => void guard.kill('SIGKILL'));
  const counts = new Map<JobOutcome, number>();
  const ready = Promise.withResolvers<void>();
  let log = '';
  const take = (event: JobEvent | Readonly<{ type: 'ready' }>): void => {
    if (event.type === 'ready') ready.resolve();
    else if (event.type === 'finished') counts.set(event.outcome, (counts.get(event.outcome) ?? 0) + 1);
    else log += `${JSON.stringify(event)}\n`;
  };
  createInterface({ input: child.stdout }).on('line', (line) => take(JSON.parse(line) as JobEvent));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  await Promise.race([ready.promise, exit]);
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  return {
    pid,
    count: (outcome) => counts.get(outcome) ?? 0,
    async kill() {
      if (isRunning()) child.kill('SIGKILL');
      await exit;
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async died(withinMs = 120_000) {
      await until('the worker has died', async () => !isRunning() || null, { withinMs, explain: () => log });
      await exit;
      return child.exitCode ?? child.signalCode;
    },
    async terminate() {
      child.kill('SIGTERM');
      await exit;
      return child.exitCode;
    },
    log: () => log,
  };
}
