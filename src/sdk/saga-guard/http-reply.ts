import type { GuardReply } from './guard-reply.ts';

/** The HTTP headers of a reply. */
export function headersOf({ body, result, retryAfterSecs }: GuardReply): Readonly<Record<string, string>> {
  return {
    ...(body === null ? {} : { 'content-type': 'application/json; charset=utf-8' }),
    ...(result === null ? {} : { 'saga-result': result }),
    ...(retryAfterSecs === null ? {} : { 'retry-after': String(retryAfterSecs) }),
  };
}
