import type { ServerResponse } from 'node:http';
import type { Effect } from './effects.ts';
import type { PartnerAct } from './script.ts';

export type Stage = Readonly<{
  response: ServerResponse;
  key: string;
  /** Makes the effect happen, once per key where keys are honoured. */
  cause: () => Effect;
  repeat: 'same' | 'processed' | 'running';
  wasDone: boolean;
  /** Resolves when held requests are let go. */
  released: () => Promise<void>;
}>;

/** Plays one act on one request. */
export function perform(act: PartnerAct, stage: Stage): void {
  const { response, key, cause } = stage;
  switch (act.act) {
    case 'ok':
      return answerOk(stage, act.delayMs);
    case 'empty':
      cause();
      return send(response, 200, '');
    case 'wrong_key':
      cause();
      return send(response, 200, JSON.stringify({ status: 'accepted', idempotency_key: `not-${key}` }));
    case 'hold': {
      const { answer } = cause();
      void stage.released().then(() => send(response, 200, answer));
      return;
    }
    case 'reset':
      return reset(act, stage);
    case 'hang':
      if (act.effect) cause();
      return;
    case 'status':
      if (act.effect) cause();
      return send(response, act.status, act.body ?? JSON.stringify({ error: act.status }), act.headers);
    case 'later':
      return sendLater(act, response);
    case 'conflict':
      if (act.kind === 'processed') cause();
      return sendConflict(stage, act.kind);
    case 'garbage':
      if (act.effect) cause();
      response.socket?.end('\u0000\u0001 this is not HTTP\r\n\r\n');
      return;
    case 'endless_body':
      if (act.effect) cause();
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"fills":[');
      return trickle(response);
    case 'huge_body':
      if (act.effect) cause();
      return send(response, 200, JSON.stringify({ idempotency_key: key, padding: 'x'.repeat(act.bytes) }));
    case 'redirect':
      return send(response, 307, '', { location: '/elsewhere' });
  }
}

function answerOk(stage: Stage, delayMs: number | undefined): void {
  const { answer } = stage.cause();
  const respond = (): void => {
    if (stage.wasDone && stage.repeat !== 'same') sendConflict(stage, stage.repeat);
    else send(stage.response, 200, answer);
  };
  if (delayMs === undefined) respond();
  else setTimeout(respond, delayMs);
}

function sendConflict({ response, key }: Stage, kind: 'processed' | 'running'): void {
  const code = kind === 'processed' ? 'already_processed' : 'in_progress';
  send(response, 409, JSON.stringify({ code, idempotency_key: key }), { 'x-conflict': code });
}

function reset({ when, by = 'rst' }: Extract<PartnerAct, { act: 'reset' }>, stage: Stage): void {
  const { response, cause } = stage;
  const hangUp = (): void => {
    if (by === 'rst') response.socket?.resetAndDestroy();
    else response.socket?.destroy();
  };
  if (when === 'before_effect') return hangUp();
  const { answer } = cause();
  if (when === 'before_answer') return hangUp();
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) };
  response.writeHead(200, headers).write(answer.slice(0, answer.length / 2), () => {
    // Bytes that were not yet read die with a reset, so the client is given a moment to read them.
    setTimeout(hangUp, 20);
  });
}

function sendLater(
  { status, afterS, form = 'seconds' }: Extract<PartnerAct, { act: 'later' }>,
  response: ServerResponse,
): void {
  const inForm = (seconds: number): string =>
    form === 'seconds' ? String(seconds) : new Date(Date.now() + seconds * 1000).toUTCString();
  const headers = afterS === undefined ? {} : { 'retry-after': inForm(afterS) };
  send(response, status, JSON.stringify({ error: 'later' }), headers);
}

/** Goes on until the client has had enough. */
function trickle(response: ServerResponse): void {
  const timer = setInterval(() => response.write('0,'), 10);
  response.on('close', () => clearInterval(timer));
}

export function send(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    ...(body === '' ? {} : { 'content-type': 'application/json' }),
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}
