import { createHash } from 'node:crypto';

/**
 * What a participant does with one call. `effect` says whether the call gets through to what it is for; whoever hears
 * nothing more may well have had it.
 */
export type ParticipantAct =
  /** The effect, and after a while its answer. */
  | Readonly<{ act: 'ok'; delayMs?: number }>
  /** Nothing for a while, then the effect, whoever still waits for it. */
  | Readonly<{ act: 'late'; ms: number }>
  /** The effect before or after the participant is told to go on; then the answer. */
  | Readonly<{ act: 'hold'; effect: 'before' | 'after' }>
  | Readonly<{ act: 'hang'; effect: boolean }>
  /** The connection ends without an answer. */
  | Readonly<{ act: 'reset'; effect: boolean }>
  /** Any status; nothing is kept about it, unlike a refusal. */
  | Readonly<{ act: 'status'; status: number; effect: boolean; retryAfterS?: number }>
  | Readonly<{ act: 'refuse'; status?: 409 | 422 }>
  /** A 200 that is no JSON, one that is too large, or bytes that are no HTTP. */
  | Readonly<{ act: 'garbage'; as: 'text' | 'huge' | 'bytes'; effect: boolean }>
  /** 202; the effect comes after a while. */
  | Readonly<{ act: 'work'; ms: number }>;

export type Op = 'action' | 'compensate';

/** One call, as the participant knows it. */
export type ParticipantCall = Readonly<{
  sagaId: string;
  step: string;
  op: Op;
  attempt: number;
  headers: Readonly<Record<string, string>>;
  isGuarded: boolean;
  /** From the request's body: by it a test tells its sagas apart. */
  tag: string;
  body: string;
}>;

/** The first rule that fits decides; what a rule does not name, it does not ask for. */
export type ParticipantRule = Readonly<{
  tag?: string;
  step?: string;
  op?: Op;
  /** Of this saga, step and op at this participant; polls count. */
  arrival?: number | Readonly<{ from?: number; to?: number }>;
  /** 0 to 1; drawn from seed, tag, step, op and arrival, so it does not matter what arrives when. */
  chance?: number;
  does: ParticipantAct;
}>;

/** As data, so that it can be handed to another process. */
export type ParticipantScript = Readonly<{
  rules?: readonly ParticipantRule[];
  otherwise?: ParticipantAct;
  seed?: number;
  /** The network delivers a call once more, so much later, with this chance. */
  again?: Readonly<{ chance: number; afterMs: number }>;
}>;

export function actFor(script: ParticipantScript, call: ParticipantCall, arrival: number): ParticipantAct {
  const { rules = [], otherwise = { act: 'ok' }, seed = 0 } = script;
  const drawn = (index: number): number => draw([seed, index, ...nameOf(call, arrival)]);
  return rules.find((rule, index) => fits(rule, call, arrival, () => drawn(index)))?.does ?? otherwise;
}

export function isDeliveredAgain(script: ParticipantScript, call: ParticipantCall, arrival: number): boolean {
  const { again, seed = 0 } = script;
  return again !== undefined && draw([seed, 'again', ...nameOf(call, arrival)]) < again.chance;
}

function nameOf({ tag, step, op }: ParticipantCall, arrival: number): readonly (string | number)[] {
  return [tag, step, op, arrival];
}

function fits(rule: ParticipantRule, call: ParticipantCall, arrival: number, drawn: () => number): boolean {
  if (rule.tag !== undefined && rule.tag !== call.tag) return false;
  if (rule.step !== undefined && rule.step !== call.step) return false;
  if (rule.op !== undefined && rule.op !== call.op) return false;
  if (typeof rule.arrival === 'number' && rule.arrival !== arrival) return false;
  if (typeof rule.arrival === 'object') {
    const { from = 1, to = Number.POSITIVE_INFINITY } = rule.arrival;
    if (arrival < from || arrival > to) return false;
  }
  return rule.chance === undefined || drawn() < rule.chance;
}

/** Evenly between 0 and 1, and always the same for the same names. */
function draw(names: readonly (string | number)[]): number {
  return createHash('sha256').update(names.join('/')).digest().readUInt32BE(0) / 2 ** 32;
}
