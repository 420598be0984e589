import { Type, type TSchema } from 'typebox';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import { actOf } from '../../platform/http/act-of.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed, nullable, Reason, Timestamp } from '../../platform/http/schema-parts.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { endSessionsOf, listSessions, type StoredSession } from './sessions-table.ts';

export type SessionRouteDeps = Readonly<{
  db: Database;
  /** How long a session may be idle; null without logins. */
  idleMs: number | null;
  /** Sessions and keys have ended. */
  onEnded: () => void;
}>;

const root = '/api/v1/sessions';
const maxListed = 1000;

const SessionsSchema: TSchema = Type.Object({
  sessions: Type.Array(
    Type.Object(
      {
        subject: Type.String({ examples: ['user:https://idp.example.com/realms/main|7f3c'] }),
        name: Type.String({ examples: ['ada'] }),
        issuer_roles: Type.Array(Type.String({ examples: ['payments-oncall'] }), {
          description: 'What the provider said at the login; bindings give roles to them.',
        }),
        created_at: Timestamp,
        last_seen_at: Type.String({ format: 'date-time', description: 'To the minute.' }),
        expires_at: Timestamp,
        address: nullable(Type.String({ examples: ['10.0.0.7'] })),
        agent: nullable(Type.String({ examples: ['Mozilla/5.0 …'] })),
      },
      { title: 'Session' },
    ),
  ),
  truncated: Type.Optional(Type.Boolean({ description: 'Only the latest logins are listed.' })),
});

const EndBody = Type.Object(
  {
    subject: Type.String({
      maxLength: 255,
      pattern: '^user:.+\\|.+$',
      examples: ['user:https://idp.example.com/realms/main|7f3c'],
      description: 'As `GET /api/v1/sessions` and the histories of items name the person.',
    }),
    reason: Reason,
  },
  closed,
);

/** What admins see of the sessions of others, and how they end them. */
export function addSessionRoutes(app: HttpApp, { db, idleMs, onEnded }: SessionRouteDeps): void {
  app.get(
    root,
    {
      config: { access: { permission: 'access:sessions:view' } },
      schema: {
        operationId: 'listSessions',
        summary: 'List who is logged in, the latest login first',
        description: 'Sessions of browsers; ended ones are not listed.',
        response: { 200: SessionsSchema },
      },
    },
    async (_request, reply) => {
      const sessions = idleMs === null ? [] : await listSessions(db, { idleMs }, maxListed + 1);
      return reply.send({
        sessions: sessions.slice(0, maxListed).map(present),
        ...(sessions.length > maxListed ? { truncated: true } : {}),
      });
    },
  );
  app.post(
    `${root}/end`,
    {
      config: { access: { permission: 'access:sessions:manage' } },
      schema: {
        operationId: 'endSessions',
        summary: 'End all sessions of a person, and revoke the API keys that the person has made',
        description:
          'Takes effect at once, also on other replicas, and ends streams. Access tokens that the issuer has given stay valid until they expire.',
        body: EndBody,
        response: {
          200: Type.Object({
            success: Type.Boolean({ examples: [true] }),
            message: Type.String({ examples: ['2 sessions ended, 1 API key revoked'] }),
            sessions: Type.Integer({ examples: [2] }),
            keys: Type.Integer({ examples: [1] }),
          }),
        },
      },
    },
    async (request, reply) => {
      const { subject, reason } = request.body;
      const { sessions, keys } = await endSessionsOf(
        db,
        subject.slice('user:'.length),
        actOf(request, reason),
      );
      onEnded();
      const message = `${counted(sessions, 'session')} ended, ${counted(keys, 'API key')} revoked`;
      return reply.send({ success: true, message, sessions, keys });
    },
  );
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

function present(session: StoredSession) {
  return {
    subject: `user:${session.subject}`,
    name: session.name,
    issuer_roles: session.roles,
    created_at: formatTimestamp(session.createdAt),
    last_seen_at: formatTimestamp(session.lastSeenAt),
    expires_at: formatTimestamp(session.expiresAt),
    address: session.address,
    agent: session.agent,
  };
}
