import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { childEnv } from '../../support/child-env.ts';
import type { FaultPlan } from './faults.ts';
import { until } from './until.ts';

const program = fileURLToPath(new URL('../replica.ts', import.meta.url));

/** Ends the replica when the pipe that only we hold open ends: also a stopped one, and also when we are killed. */
export const guardScript = 'read -r _; kill -9 "$1" 2>/dev/null';

const leaseSettings = {
  DLQ_RETRY_LEASE: '2s',
  DLQ_PARTITION_LEASE: '3s',
  KAFKA_PUBLISH_TIMEOUT: '1s',
  KAFKA_DISCOVERY_INTERVAL: '1s',
} as const;

export type Answer = Readonly<{ status: number; body: unknown }>;

/** A replica in a process of its own, seen from outside: signals and HTTP. */
export type Replica = Readonly<{
  url: string;
  pid: number;
  /** Null when the connection was lost before the answer: the process has died. */
  get(path: string): Promise<Answer | null>;
  post(path: string, body?: unknown): Promise<Answer | null>;
  /** The sum of all series of this name whose labels hold `labels`. */
  metric(name: string, labels?: string): Promise<number>;
  kill(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Resolves when it has stopped itself. */
  stopped(): Promise<void>;
  /** Resolves when it has ended, with the signal that ended it. */
  died(): Promise<NodeJS.Signals | null>;
  /** SIGTERM; resolves with the exit code. */
  terminate(): Promise<number | null>;
  log(): string;
}>;

export async function startReplica(
  env: Readonly<Record<string, string>>,
  plan: FaultPlan = { faults: [] },
): Promise<Replica> {
  const child = spawn(process.execPath, [program], {
    env: {
      ...childEnv,
      PORT: '0',
      LOG_LEVEL: 'info',
      ...leaseSettings,
      ...env,
      CHAOS_PLAN: JSON.stringify(plan),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const guard = spawn('sh', ['-c', guardScript, 'guard', String(child.pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  const exit = once(child, 'exit').then(() => void guard.kill('SIGKILL'));
  const url = await readUrl(child, () => log);
  return controlsOf({ child, exit, url, log: () => log });
}

async function readUrl(child: ChildProcess, log: () => string): Promise<string> {
  assert.ok(child.stdout);
  for await (const line of createInterface({ input: child.stdout }))
    return (JSON.parse(line) as { url: string }).url;
  throw new Error(`the replica ended before it was ready:\n${log()}`);
}

function controlsOf({
  child,
  exit,
  url,
  log,
}: Readonly<{ child: ChildProcess; exit: Promise<void>; url: string; log: () => string }>): Replica {
  const { pid } = child;
  assert.ok(pid !== undefined);
  const ask = async (path: string, init: RequestInit): Promise<Answer | null> => {
    try {
      const response = await fetch(`${url}${path}`, init);
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.includes('json') === true;
      return { status: response.status, body: isJson ? JSON.parse(text) : text };
    } catch {
      return null;
    }
  };
  const get: Replica['get'] = (path) => ask(path, {});
  return {
    url,
    pid,
    log,
    get,
    post: (path, body) =>
      ask(
        path,
        body === undefined
          ? { method: 'POST' }
          : {
              method: 'POST',
              headers: { 'content-type': 'application/json' },
              body: JSON.stringify(body),
            },
      ),
    async metric(name, labels = '') {
      const answer = await get('/metrics');
      return typeof answer?.body === 'string' ? sumOf(answer.body, name, labels) : 0;
    },
    async kill() {
      if (isRunning(child)) child.kill('SIGKILL');
      await exit;
    },
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    stopped: () => untilStopped(pid, log),
    async died() {
      await until('the replica has died', async () => !isRunning(child) || null, { explain: log });
      await exit;
      return child.signalCode;
    },
    async terminate() {
      child.kill('SIGTERM');
      await exit;
      return child.exitCode;
    },
  };
}

const isRunning = (child: ChildProcess): boolean => child.exitCode === null && child.signalCode === null;

async function untilStopped(pid: number, log: () => string): Promise<void> {
  await until(
    'the replica has stopped itself',
    // The state stands behind the program's name, which stands in brackets.
    async () => (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.startsWith('T'),
    { explain: log },
  );
}

function sumOf(text: string, name: string, labels: string): number {
  return text
    .split('\n')
    .filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(labels))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
