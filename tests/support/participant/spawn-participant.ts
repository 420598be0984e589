import assert from 'node:assert/strict';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { ParticipantCommand, ParticipantReply } from './commands.ts';
import type { ParticipantCall, ParticipantScript } from './script.ts';
import type { ParticipantOptions } from './serve-participant.ts';
import type { StepEffect } from './steps-book.ts';

/** A participant in a process of its own. */
export type SpawnedParticipant = Readonly<{
  pid: number;
  port: number;
  /** Has the saga guard. */
  guardedUrl: string;
  /** Does what it is asked, however often. */
  bareUrl: string;
  setScript(script: ParticipantScript): Promise<void>;
  /** Lets the held calls of a tag go on, and every later one. */
  release(tag?: string): Promise<void>;
  /** What has been committed; of one step in its order. */
  guardedEffects(): Promise<readonly StepEffect[]>;
  arrivals(): Promise<readonly ParticipantCall[]>;
  /** Every call to the guard that has ever arrived arrives once more, late, but for those of some tags. */
  deliverAgain(except?: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}>;

export async function spawnParticipant(options: ParticipantOptions): Promise<SpawnedParticipant> {
  const child = fork(new URL('../participant-process.ts', import.meta.url), argumentsOf(options), {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const port = await portOf(child);
  const ask = createAsker(child);
  const origin = `http://127.0.0.1:${port}`;
  return {
    pid: child.pid ?? 0,
    port,
    guardedUrl: `${origin}/guarded`,
    bareUrl: `${origin}/bare`,
    setScript: async (script) => void (await ask({ command: 'set_script', script })),
    release: async (tag = '') => void (await ask({ command: 'release', tag })),
    guardedEffects: async () => (await ask({ command: 'effects' })).effects ?? [],
    arrivals: async () => (await ask({ command: 'arrivals' })).arrivals ?? [],
    deliverAgain: async (except = []) => void (await ask({ command: 'deliver_again', except })),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}

function argumentsOf({ databaseUrl, port = 0, script = {} }: ParticipantOptions): readonly string[] {
  return [`--database=${databaseUrl}`, `--port=${port}`, `--script=${JSON.stringify(script)}`];
}

async function portOf(child: ChildProcess): Promise<number> {
  assert.ok(child.stdout);
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    once(child, 'exit').then(([code]) => assert.fail(`the participant ended at once: ${String(code)}`)),
  ]);
  return (JSON.parse(String(line)) as Readonly<{ port: number }>).port;
}

function createAsker(child: ChildProcess): (command: ParticipantCommand) => Promise<ParticipantReply> {
  const waiting = new Map<number, PromiseWithResolvers<ParticipantReply>>();
  let lastId = 0;
  child.on('message', ({ id, ...reply }: ParticipantReply & Readonly<{ id: number }>) => {
    if (reply.error === undefined) waiting.get(id)?.resolve(reply);
    else waiting.get(id)?.reject(new Error(reply.error));
    waiting.delete(id);
  });
  child.once('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('the participant has ended'));
    waiting.clear();
  });
  return (command) => {
    const id = ++lastId;
    const asked = Promise.withResolvers<ParticipantReply>();
    waiting.set(id, asked);
    child.send({ id, ...command });
    return asked.promise;
  };
}
