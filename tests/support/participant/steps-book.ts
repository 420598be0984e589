import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { Op, ParticipantCall } from './script.ts';

/** Something that has really happened, in the order of its commit. */
export type StepEffect = Readonly<{
  sagaId: string;
  step: string;
  op: Op;
  attempt: number;
  epoch: number;
}>;

export type StepReply = Readonly<{ status: number; body: string; retryAfterS?: number }>;

/** What the participant's own code does with a call that it is given. */
export type Handling = 'do' | 'refuse' | 'begin';

/** A participant's book: what has happened, and, where it is guarded, what it knows of each step of each saga. */
export type StepsBook = Readonly<{
  arrive(call: ParticipantCall, handling: Handling): StepReply;
  /** A long action comes to its end. */
  complete(call: ParticipantCall): void;
  effects(): readonly StepEffect[];
}>;

type Phase = 'working' | 'done' | 'refused' | 'undone' | 'void';

type Row = Readonly<{ phase: Phase; request: string; reply: StepReply; isUndoRequested: boolean }>;

/** Row and effect are one line, so they are committed together. */
type Entry = Readonly<{ key: string; row: Row; effect: StepEffect | null }>;

const empty: StepReply = { status: 204, body: '' };
const working: StepReply = { status: 202, body: '{"saga_result":"working"}', retryAfterS: 1 };
const tooLate: StepReply = { status: 408, body: '{"saga_result":"too-late"}' };
const mismatch: StepReply = { status: 422, body: '{"saga_result":"mismatch"}' };
const alreadyUndone: StepReply = { status: 409, body: '{"saga_result":"already-compensated"}' };

/**
 * The rules of the guard for participants: one row for a step's action and its undo, which compete for it, changed
 * together with the effect. With a file the book outlives a killed process.
 */
export function openGuardedBook(path?: string): StepsBook {
  const rows = new Map<string, Row>();
  const effects: StepEffect[] = [];
  const take = ({ key, row, effect }: Entry): void => {
    rows.set(key, row);
    if (effect !== null) effects.push(effect);
  };
  const commit = (call: ParticipantCall, row: Row, effect: StepEffect | null): StepReply => {
    const entry: Entry = { key: keyOf(call), row, effect };
    if (path !== undefined) appendFileSync(path, `${JSON.stringify(entry)}\n`);
    take(entry);
    return row.reply;
  };
  for (const entry of readEntries(path)) take(entry);

  const act = (call: ParticipantCall, handling: Handling): StepReply => {
    const row = rows.get(keyOf(call));
    switch (row?.phase) {
      case 'done':
      case 'refused':
        return row.request === call.body ? row.reply : mismatch;
      case 'working':
        return working;
      case 'undone':
      case 'void':
        return alreadyUndone;
      case undefined:
        break;
    }
    if (Date.now() > call.deadline) return tooLate;
    const begun = { request: call.body, isUndoRequested: false };
    switch (handling) {
      case 'do':
        return commit(call, { ...begun, phase: 'done', reply: replyTo(call) }, effectOf(call));
      case 'refuse':
        return commit(
          call,
          { ...begun, phase: 'refused', reply: { status: 409, body: '{"no":true}' } },
          null,
        );
      case 'begin':
        return commit(call, { ...begun, phase: 'working', reply: working }, null);
    }
  };

  const undo = (call: ParticipantCall, handling: Handling): StepReply => {
    const row = rows.get(keyOf(call));
    switch (row?.phase) {
      case 'refused':
      case 'void':
        return empty;
      case 'undone':
        return row.reply;
      case 'working':
        commit(call, { ...row, isUndoRequested: true }, null);
        return working;
      case 'done':
      case undefined:
        break;
    }
    if (Date.now() > call.deadline) return tooLate;
    if (row === undefined)
      return commit(call, { phase: 'void', request: '', reply: empty, isUndoRequested: true }, null);
    if (handling === 'refuse') return { status: 409, body: '{"no":true}' };
    return commit(call, { ...row, phase: 'undone', reply: replyTo(call) }, effectOf(call));
  };

  return {
    arrive: (call, handling) => (call.op === 'action' ? act(call, handling) : undo(call, handling)),
    complete(call) {
      const row = rows.get(keyOf(call));
      if (row?.phase !== 'working') return;
      if (row.isUndoRequested) commit(call, { ...row, phase: 'void', reply: empty }, null);
      else commit(call, { ...row, phase: 'done', reply: replyTo(call) }, effectOf(call));
    },
    effects: () => effects,
  };
}

/** Who looks at nothing: every call that gets through is an effect. */
export function openBareBook(): StepsBook {
  const effects: StepEffect[] = [];
  return {
    arrive(call, handling) {
      if (handling === 'refuse') return { status: 409, body: '{"no":true}' };
      effects.push(effectOf(call));
      return replyTo(call);
    },
    complete: () => {},
    effects: () => effects,
  };
}

function readEntries(path: string | undefined): readonly Entry[] {
  if (path === undefined || !existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Entry);
}

function keyOf({ sagaId, step }: ParticipantCall): string {
  return `${sagaId} ${step}`;
}

function effectOf({ sagaId, step, op, attempt, epoch }: ParticipantCall): StepEffect {
  return { sagaId, step, op, attempt, epoch };
}

function replyTo({ sagaId, step, op }: ParticipantCall): StepReply {
  return { status: 200, body: JSON.stringify({ id: `${op}-${step}-${sagaId.slice(0, 8)}` }) };
}
