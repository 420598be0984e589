import { Type, type TSchema } from 'typebox';
import type { Clock } from '../kernel/clock.ts';
import { permissions } from '../kernel/access/permissions.ts';
import { mayAnywhere, subjectOf, type Principal } from '../kernel/access/principal.ts';
import { formatTimestamp } from '../kernel/timestamp.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import { Timestamp } from '../platform/http/schema-parts.ts';
import { ScopeSchema } from './scope-schema.ts';

const MeSchema: TSchema = Type.Object(
  {
    subject: Type.String({
      examples: ['user:https://idp.example.com/realms/main|7f3c'],
      description: 'As bindings and the history of items name the caller.',
    }),
    name: Type.String({ examples: ['ada'] }),
    type: Type.Enum(['user', 'service', 'api_key', 'local']),
    roles: Type.Array(Type.String({ examples: ['sys_operator'] })),
    permissions: Type.Array(Type.String({ examples: ['dlq:messages:view'] }), {
      description: 'For everything, or for what a scope covers.',
    }),
    scopes: Type.Array(
      Type.Object({
        role: Type.String({ examples: ['sys_operator'] }),
        scopes: Type.Array(ScopeSchema, {
          description: 'All of them apply; a role without any is not narrowed.',
        }),
      }),
      { description: 'How each role is narrowed.' },
    ),
    environment: Type.String({ examples: ['production'] }),
    time: Timestamp,
  },
  { title: 'Me' },
);

export type MeDeps = Readonly<{ clock: Clock; environment: string }>;

export function addMeRoute(app: HttpApp, { clock, environment }: MeDeps): void {
  app.get(
    '/api/v1/me',
    {
      config: { access: 'authenticated' },
      schema: {
        operationId: 'getMe',
        summary: 'Who calls, and what the caller may do',
        description: 'The caller is the owner of the token or the API key; without authentication `local`.',
        response: { 200: MeSchema },
      },
    },
    async (request, reply) =>
      reply.send({ ...presentPrincipal(request.principal), environment, time: formatTimestamp(clock.now()) }),
  );
}

function presentPrincipal(principal: Principal) {
  const { name, type, roles, grants } = principal;
  const narrowed = new Map(
    grants.map(({ role, scopes }) => [JSON.stringify([role, scopes]), { role, scopes }]),
  );
  return {
    subject: subjectOf(principal),
    name,
    type,
    roles,
    permissions: permissions.filter((permission) => mayAnywhere(principal, permission)),
    scopes: [...narrowed.values()],
  };
}
