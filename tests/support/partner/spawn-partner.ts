import assert from 'node:assert/strict';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { SeenRequest } from '../partner.ts';
import type { PartnerCommand, PartnerCounts, PartnerReply } from './commands.ts';
import type { Effect } from './effects.ts';
import type { ScriptRules } from './script.ts';

export type SpawnOptions = Readonly<{
  port?: number;
  script?: ScriptRules;
  /** Where it writes its effects down, and finds what an earlier one did. */
  ledgerFile?: string;
  honoursKeys?: boolean;
  keepsRequests?: boolean;
}>;

/** The partner in a process of its own: the same as in this one, but every question takes a moment. */
export type SpawnedPartner = Readonly<{
  pid: number;
  port: number;
  url: string;
  statusUrl: string;
  setScript(script: ScriptRules): Promise<void>;
  release(): Promise<void>;
  counts(): Promise<PartnerCounts>;
  effects(): Promise<readonly Effect[]>;
  /** Empty unless it was told to keep them. */
  requests(): Promise<readonly SeenRequest[]>;
  stop(): Promise<void>;
}>;

export async function spawnPartner(options: SpawnOptions = {}): Promise<SpawnedPartner> {
  const child = fork(new URL('../partner-process.ts', import.meta.url), argumentsOf(options), {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const { port, url, statusUrl } = await firstLineOf(child);
  const ask = createAsker(child);
  return {
    pid: child.pid ?? 0,
    port,
    url,
    statusUrl,
    setScript: async (script) => void (await ask({ command: 'set_script', script })),
    release: async () => void (await ask({ command: 'release' })),
    counts: async () => told((await ask({ command: 'counts' })).counts),
    effects: async () => told((await ask({ command: 'effects' })).effects),
    requests: async () => told((await ask({ command: 'requests' })).requests),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}

function argumentsOf(options: SpawnOptions): readonly string[] {
  const { port = 0, script = {}, ledgerFile, honoursKeys = true, keepsRequests = false } = options;
  return [
    `--port=${port}`,
    `--script=${JSON.stringify(script)}`,
    ...(ledgerFile === undefined ? [] : [`--ledger-file=${ledgerFile}`]),
    ...(honoursKeys ? [] : ['--ignore-keys']),
    ...(keepsRequests ? ['--keep-requests'] : []),
  ];
}

async function firstLineOf(child: ChildProcess) {
  assert.ok(child.stdout);
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    once(child, 'exit').then(([code]) => assert.fail(`the partner ended at once: ${String(code)}`)),
  ]);
  const said = JSON.parse(String(line)) as Readonly<{ port: number; url: string; status_url: string }>;
  return { port: said.port, url: said.url, statusUrl: said.status_url };
}

function createAsker(child: ChildProcess): (command: PartnerCommand) => Promise<PartnerReply> {
  const waiting = new Map<number, PromiseWithResolvers<PartnerReply>>();
  let lastId = 0;
  child.on('message', ({ id, ...reply }: PartnerReply & Readonly<{ id: number }>) => {
    waiting.get(id)?.resolve(reply);
    waiting.delete(id);
  });
  child.once('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('the partner has ended'));
    waiting.clear();
  });
  return (command) => {
    const id = ++lastId;
    const asked = Promise.withResolvers<PartnerReply>();
    waiting.set(id, asked);
    child.send({ id, ...command });
    return asked.promise;
  };
}

function told<T>(reply: T | undefined): T {
  assert.ok(reply !== undefined, 'the partner did not answer what it was asked');
  return reply;
}
