import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createEffectLedger, type EffectLedger } from './partner/effects.ts';
import { perform, send } from './partner/perform.ts';
import { directorOf, type PartnerAct, type PartnerRequest, type Script } from './partner/script.ts';

export { createEffectLedger, openEffectLedger, type Effect, type EffectLedger } from './partner/effects.ts';
export type { PartnerAct, PartnerRequest, Script, ScriptRule, ScriptRules } from './partner/script.ts';

export type PartnerOptions = Readonly<{
  port?: number;
  script?: Script;
  /** What has happened before: a partner that restarts goes on with its own. */
  ledger?: EffectLedger;
  /** False: every request is an effect, whatever key it carries. */
  honoursKeys?: boolean;
  /** False for benches: `requests` stays empty. */
  keepsRequests?: boolean;
}>;

/** One of the requests that came; questions about a status are not among them. */
export type SeenRequest = PartnerRequest & Readonly<{ act: PartnerAct['act']; atMs: number }>;

/**
 * Somebody outside who takes orders over HTTP: a real server with a book of what really happened, which behaves as
 * badly as its script says. Where it honours keys, the effect of a key happens once, however often it is asked for,
 * and the same key with another body is refused with 422.
 */
export type Partner = Readonly<{
  port: number;
  /** Where orders go. */
  url: string;
  /** Where to ask about one; `{key}` stands for its key. 200 with `status: done`, 404 with `status: absent`. */
  statusUrl: string;
  ledger: EffectLedger;
  requests: readonly SeenRequest[];
  /** Of all requests, also where they are not kept. */
  requestCount(): number;
  /** How many questions about a status came. */
  questionCount(): number;
  setScript(script: Script): void;
  /** Answers what is held. */
  release(): void;
  /** At once, with every connection. */
  stop(): Promise<void>;
}>;

export async function startPartner(options: PartnerOptions = {}): Promise<Partner> {
  const { ledger = createEffectLedger(), honoursKeys = true, keepsRequests = true } = options;
  let director = directorOf(options.script);
  let held = Promise.withResolvers<void>();
  const attempts = new Map<string, number>();
  const requests: SeenRequest[] = [];
  const counts = { requests: 0, questions: 0 };

  const takeOrder = (request: PartnerRequest, response: ServerResponse): void => {
    const { key, body } = request;
    const before = honoursKeys ? ledger.get(key) : undefined;
    const act = director.actFor(request);
    counts.requests++;
    if (keepsRequests) requests.push({ ...request, act: act.act, atMs: performance.now() });
    if (before !== undefined && before.body !== body)
      return send(response, 422, JSON.stringify({ error: 'this key came with another body before' }));
    perform(act, {
      response,
      key,
      cause: () => before ?? ledger.add(key, body),
      repeat: director.repeat,
      wasDone: before !== undefined,
      released: () => held.promise,
    });
  };

  const answerQuestion = (key: string, response: ServerResponse): void => {
    counts.questions++;
    if (director.status === 'hang') return;
    if (director.status === 'error') return send(response, 500, '{"error":"no status today"}');
    const effect = ledger.get(key);
    if (effect === undefined) return send(response, 404, '{"status":"absent"}');
    const known = JSON.parse(effect.answer) as Readonly<Record<string, unknown>>;
    send(response, 200, JSON.stringify({ ...known, status: 'done', idempotency_key: key }));
  };

  const server = createServer((message, response) => {
    const [, place, rest = ''] = (message.url ?? '').split(/[/?]/);
    if (message.method === 'GET' && place === 'status')
      return answerQuestion(decodeURIComponent(rest), response);
    if (place !== 'orders') return send(response, 404, '{"error":"no such place"}');
    const key = String(message.headers['idempotency-key'] ?? '');
    if (key === '') return send(response, 400, '{"error":"an Idempotency-Key is missing"}');
    const attempt = (attempts.get(key) ?? 0) + 1;
    attempts.set(key, attempt);
    readBody(message, (body) => takeOrder({ key, attempt, headers: message.headers, body }, response));
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}/orders`,
    statusUrl: `http://127.0.0.1:${port}/status/{key}`,
    ledger,
    requests,
    requestCount: () => counts.requests,
    questionCount: () => counts.questions,
    setScript: (script) => {
      director = directorOf(script);
    },
    release: () => {
      held.resolve();
      held = Promise.withResolvers<void>();
    },
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function readBody(message: IncomingMessage, then: (body: string) => void): void {
  const chunks: Buffer[] = [];
  message.on('data', (chunk: Buffer) => chunks.push(chunk));
  message.on('end', () => then(Buffer.concat(chunks).toString('utf8')));
}
