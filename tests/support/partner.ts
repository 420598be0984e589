import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createEffectLedger, type Effect, type EffectLedger } from './partner/effects.ts';
import { perform, send } from './partner/perform.ts';
import { directorOf, type PartnerAct, type PartnerRequest, type Script } from './partner/script.ts';

export { createEffectLedger, openEffectLedger, type Effect, type EffectLedger } from './partner/effects.ts';
export type { PartnerAct, PartnerRequest, Script, ScriptRule, ScriptRules } from './partner/script.ts';

export type PartnerOptions = Readonly<{
  port?: number;
  script?: Script;
  /** Earlier effects: a restarted partner continues with its own ledger. */
  ledger?: EffectLedger;
  /** False: every request is an effect, whatever key it carries. */
  honoursKeys?: boolean;
  /** False for benches: `requests` stays empty. */
  keepsRequests?: boolean;
}>;

/** A received request; status queries are not included. */
export type SeenRequest = PartnerRequest & Readonly<{ act: PartnerAct['act']; atMs: number }>;

/**
 * An external receiver of orders: a real HTTP server with a ledger of effects, which fails as its script says. If it
 * honours keys, a key takes effect once, and the same key with another body is rejected with 422.
 */
export type Partner = Readonly<{
  port: number;
  /** Where orders go. */
  url: string;
  /** The status of an order by its `{key}`: 200 with `status: done`, 404 with `status: absent`. */
  statusUrl: string;
  ledger: EffectLedger;
  requests: readonly SeenRequest[];
  /** Also counts requests that are not kept. */
  requestCount(): number;
  /** Number of status queries. */
  questionCount(): number;
  setScript(script: Script): void;
  /** Answers the requests that wait. */
  release(): void;
  /** Closes all connections immediately. */
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

  const server = createServer((message, response) => {
    const [, place, rest = ''] = (message.url ?? '').split(/[/?]/);
    if (message.method === 'GET' && place === 'status') {
      counts.questions++;
      const asked = decodeURIComponent(rest);
      return answerStatus(director.status, { key: asked, effect: ledger.get(asked) }, response);
    }
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

function answerStatus(
  mood: ReturnType<typeof directorOf>['status'],
  { key, effect }: Readonly<{ key: string; effect: Effect | undefined }>,
  response: ServerResponse,
): void {
  if (mood === 'hang') return;
  if (mood === 'error') return send(response, 500, '{"error":"no status today"}');
  if (effect === undefined) return send(response, 404, '{"status":"absent"}');
  const known = JSON.parse(effect.answer) as Readonly<Record<string, unknown>>;
  send(response, 200, JSON.stringify({ ...known, status: 'done', idempotency_key: key }));
}

function readBody(message: IncomingMessage, then: (body: string) => void): void {
  const chunks: Buffer[] = [];
  message.on('data', (chunk: Buffer) => chunks.push(chunk));
  message.on('end', () => then(Buffer.concat(chunks).toString('utf8')));
}
