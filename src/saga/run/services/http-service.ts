import { createHttpPool, startCall, type CallEnd } from '../../../platform/http-client/http-call.ts';
import { tryConnection } from '../../../platform/http-client/try-connection.ts';
import { readHeaders } from '../../../platform/http-client/outgoing-headers.ts';
import { judgeCallError, judgeHttpAnswer, type Answer, type Failure } from '../../domain/judge-answer.ts';
import { parseCheckedMethod } from '../../domain/workflow/method.ts';
import { MAX_OUTPUT_BYTES } from '../../domain/step-output.ts';
import type { OutgoingCall } from './service.ts';
import { sagaHeaders } from './saga-headers.ts';
import type { HttpServiceSettings } from '../../domain/service-settings.ts';
import type { OpenService } from './service.ts';

/** Opens a participant that is called over HTTP. */
export function openHttpService(settings: HttpServiceSettings): OpenService {
  const base = new URL(settings.baseUrl);
  const pool = createHttpPool({
    origin: base.origin,
    connections: settings.maxInFlight,
    timeoutMs: 30_000,
    tls: settings.tls,
  });
  return {
    async send(call) {
      const parsed = parseCheckedMethod(call.method, 'http');
      if (!parsed.ok || parsed.method.type !== 'http') return unsent(`${call.method} is not an HTTP method`);
      const configured = readHeaders(settings.headers);
      if ('unreadable' in configured) return unsent(configured.unreadable);
      const { verb, path } = parsed.method;
      let isOurs = true;
      const { ended } = startCall(pool, {
        method: verb,
        path: `${base.pathname.replace(/\/$/, '')}${path}`,
        headers: { ...configured.headers, ...contentOf(verb), ...sagaHeaders(call) },
        ...(verb === 'GET' ? {} : { body: bodyOf(call) }),
        timeoutMs: call.call.timeoutMs,
        maxResponseBytes: MAX_OUTPUT_BYTES,
        // A reused connection that the peer has just closed would leave the call in doubt.
        hasOwnConnection: !settings.isIdempotent,
        mayBegin: () => (isOurs = call.mayBegin()),
      });
      const answer = judge(await ended);
      return isOurs || answer.class !== 'unknown' ? answer : { ...answer, isDown: false };
    },
    methods: async () => null,
    connect: (withinMs) => tryConnection(base, withinMs),
    async close() {
      await pool.close();
    },
  };
}

const contentOf = (verb: string): Readonly<Record<string, string>> =>
  verb === 'GET' ? {} : { 'content-type': 'application/json' };

function bodyOf({ request }: OutgoingCall): string {
  return JSON.stringify(request ?? null);
}

function judge(outcome: CallEnd): Answer {
  switch (outcome.end) {
    case 'answered':
      return judgeHttpAnswer(outcome.answer, new Date());
    case 'broken':
    case 'lost':
      return { ...judgeCallError(outcome.error), isUnsent: false };
    case 'unsent':
      return { ...judgeCallError(outcome.error), isUnsent: true };
    case 'withdrawn':
      return unsent('the lease was lost before the request was sent');
  }
}

function unsent(detail: string): Failure {
  return { class: 'unknown', detail, isTimeout: true, isUnsent: true };
}
