import type { GuardRequest } from './guard-call.ts';
import type { Guarded } from './guarded-action.ts';
import { headersOf } from './http-reply.ts';

/** The part of Fastify's reply that is used. */
type Reply = {
  code(status: number): unknown;
  headers(values: Readonly<Record<string, string>>): unknown;
  send(payload?: string): unknown;
};

/** For `app.post(path, fastifyHandler(guarded))`. */
export function fastifyHandler(
  guarded: Guarded,
): (
  request: Readonly<{ headers: GuardRequest['headers']; body: unknown }>,
  reply: Reply,
) => Promise<unknown> {
  return async ({ headers, body }, reply) => {
    const answer = await guarded({ headers, body });
    reply.code(answer.status);
    reply.headers(headersOf(answer));
    return reply.send(answer.body ?? undefined);
  };
}
