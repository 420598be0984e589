import { createHttpPool, startCall, type CallEnd } from '../../platform/http-client/http-call.ts';
import { readHeaders } from '../../platform/http-client/outgoing-headers.ts';
import { judgeCallError, judgeHttpAnswer, type Answer, type Failure } from '../domain/judge-answer.ts';
import { parseMethod } from '../domain/method.ts';
import { MAX_OUTPUT_BYTES } from '../domain/step-output.ts';
import type { OutgoingCall } from '../usecase/ports.ts';
import { sagaHeaders } from '../usecase/saga-headers.ts';
import type { HttpServiceSettings } from '../domain/service-settings.ts';
import type { OpenService } from './open-services.ts';

/** A participant that is called over HTTP. */
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
      const parsed = parseMethod(call.method, 'http');
      if (!parsed.ok || parsed.method.type !== 'http') return unsent(`${call.method} is no HTTP method`);
      const configured = readHeaders(settings.headers);
      if ('unreadable' in configured) return unsent(configured.unreadable);
      const { verb, path } = parsed.method;
      const { ended } = startCall(pool, {
        method: verb,
        path: `${base.pathname.replace(/\/$/, '')}${path}`,
        headers: { ...configured.headers, 'content-type': 'application/json', ...sagaHeaders(call) },
        body: bodyOf(call),
        timeoutMs: call.call.timeoutMs,
        maxResponseBytes: MAX_OUTPUT_BYTES,
        // One that was just closed by the other side would leave the call in doubt.
        hasOwnConnection: !settings.isIdempotent,
        mayBegin: call.mayBegin,
      });
      return judge(await ended);
    },
    methods: async () => null,
    async close() {
      await pool.close();
    },
  };
}

function bodyOf({ request }: OutgoingCall): string {
  return JSON.stringify(request ?? null);
}

function judge(end: CallEnd): Answer {
  switch (end.end) {
    case 'answered':
      return judgeHttpAnswer(end.answer, new Date());
    case 'broken':
    case 'lost':
      return { ...judgeCallError(end.error), isUnsent: false };
    case 'unsent':
      return { ...judgeCallError(end.error), isUnsent: true };
    case 'withdrawn':
      return unsent('it was taken back');
  }
}

function unsent(detail: string): Failure {
  return { class: 'unknown', detail, isTimeout: true, isUnsent: true };
}
