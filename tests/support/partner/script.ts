import { createHash } from 'node:crypto';

/**
 * What the partner does with one request. The effect comes first wherever there is one, so a client that hears
 * nothing more may well have had it.
 */
export type PartnerAct =
  /** The effect, and an answer like the seed's. */
  | Readonly<{ act: 'ok'; delayMs?: number }>
  /** The effect, and a 200 without a body. */
  | Readonly<{ act: 'empty' }>
  /** The effect, and an answer that names another key. */
  | Readonly<{ act: 'wrong_key' }>
  /** The effect at once, the answer when the partner is told to release it. */
  | Readonly<{ act: 'hold' }>
  /** The connection ends: before anything happened, after the effect, or in the middle of the answer. */
  | Readonly<{ act: 'reset'; when: 'before_effect' | 'before_answer' | 'mid_answer'; by?: 'rst' | 'fin' }>
  /** Never an answer. */
  | Readonly<{ act: 'hang'; effect: boolean }>
  /** Any status, such as 400, 401, 500 or 502. */
  | Readonly<{
      act: 'status';
      status: number;
      effect: boolean;
      headers?: Readonly<Record<string, string>>;
      body?: string;
    }>
  /** Come later; nothing happened. */
  | Readonly<{ act: 'later'; status: 429 | 503; afterS?: number; form?: 'seconds' | 'date' }>
  /** `processed`: the effect has happened, at the latest now. `running`: it has not, and does not by this request. */
  | Readonly<{ act: 'conflict'; kind: 'processed' | 'running' }>
  /** Bytes that are not HTTP. */
  | Readonly<{ act: 'garbage'; effect: boolean }>
  /** A 200 whose JSON never ends. */
  | Readonly<{ act: 'endless_body'; effect: boolean }>
  | Readonly<{ act: 'huge_body'; effect: boolean; bytes: number }>
  | Readonly<{ act: 'redirect' }>;

export type PartnerRequest = Readonly<{
  key: string;
  /** Of this key at this partner; 1 is the first. */
  attempt: number;
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  body: string;
}>;

/** The first rule that fits decides; what a rule does not name, it does not ask for. */
export type ScriptRule = Readonly<{
  keyPrefix?: string;
  attempt?: number | Readonly<{ from?: number; to?: number }>;
  /** 0 to 1; drawn from seed, key and attempt, so the order in which requests arrive changes nothing. */
  chance?: number;
  does: PartnerAct;
}>;

/** As data, so that it can be handed to another process. */
export type ScriptRules = Readonly<{
  rules?: readonly ScriptRule[];
  otherwise?: PartnerAct;
  seed?: number;
  /** How a key whose effect has happened is answered, where the act is `ok`. */
  repeat?: 'same' | 'processed' | 'running';
  /** How questions about a key are answered. */
  status?: 'ledger' | 'error' | 'hang';
}>;

/** Or as a function of the request, for what rules cannot say. */
export type Script = ScriptRules | ((request: PartnerRequest) => PartnerAct);

export type Director = Readonly<{
  actFor(request: PartnerRequest): PartnerAct;
  repeat: NonNullable<ScriptRules['repeat']>;
  status: NonNullable<ScriptRules['status']>;
}>;

const plain: PartnerAct = { act: 'ok' };

export function directorOf(script: Script = {}): Director {
  if (typeof script === 'function') return { actFor: script, repeat: 'same', status: 'ledger' };
  const { rules = [], otherwise = plain, seed = 0, repeat = 'same', status = 'ledger' } = script;
  const actFor = (request: PartnerRequest): PartnerAct =>
    rules.find((rule, index) => fits(rule, request, `${seed}/${index}`))?.does ?? otherwise;
  return { actFor: rules.length === 0 ? () => otherwise : actFor, repeat, status };
}

function fits({ keyPrefix, attempt, chance }: ScriptRule, request: PartnerRequest, seed: string): boolean {
  if (keyPrefix !== undefined && !request.key.startsWith(keyPrefix)) return false;
  if (typeof attempt === 'number' && request.attempt !== attempt) return false;
  if (typeof attempt === 'object') {
    const { from = 1, to = Number.POSITIVE_INFINITY } = attempt;
    if (request.attempt < from || request.attempt > to) return false;
  }
  return chance === undefined || draw(`${seed}/${request.key}/${request.attempt}`) < chance;
}

/** Evenly between 0 and 1, and always the same for the same text. */
function draw(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;
}
