import { Type, type Static, type TSchema } from 'typebox';
import { includesGrant, subjectOf, type Principal } from '../../kernel/access/principal.ts';
import type { Policy } from '../../kernel/access/roles.ts';
import type { Scope } from '../../kernel/access/scope.ts';
import { AppError } from '../../kernel/errors.ts';
import { formatInstant, formatTimestamp } from '../../kernel/timestamp.ts';
import { actOf } from '../../platform/http/act-of.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { ScopeSchema } from '../scope-schema.ts';
import { makeKey } from './key-format.ts';
import { insertKey, listKeys, revokeKey, type Maker, type StoredKey } from './keys-table.ts';

export type KeyRouteDeps = Readonly<{
  db: Database;
  policy: Policy;
  /** Null: keys are not enabled. */
  maxDays: number | null;
  /** The token of the user who makes a key. */
  makerOf: (principal: Principal) => Maker | undefined;
  onRevoked: () => void;
}>;

const root = '/api/v1/keys';
const usualDays = 90;
const maxListed = 1000;

const NewKeyBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100, pattern: '\\S', examples: ['nightly retry'] }),
    role: Type.String({ minLength: 1, maxLength: 100, examples: ['worker'] }),
    scopes: Type.Optional(ScopeSchema),
    expires_in_days: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 365, default: usualDays, examples: [30] }),
    ),
  },
  closed,
);

const keyFields = {
  id: Type.String({ examples: ['k3x9m2pq'] }),
  name: Type.String({ examples: ['nightly retry'] }),
  role: Type.String({ examples: ['worker'] }),
  scopes: nullable(ScopeSchema),
  maker: Type.String({
    examples: ['user:https://idp.example.com/realms/main|7f3c'],
    description: 'The key may do at most what its maker may do now.',
  }),
  maker_name: Type.String({ examples: ['ada'] }),
  created_at: Timestamp,
  expires_at: Timestamp,
  last_used_at: nullable(Timestamp),
  revoked_at: nullable(Timestamp),
  revoked_by: nullable(Type.String()),
};

const KeysSchema: TSchema = Type.Object({
  keys: Type.Array(Type.Object(keyFields, { title: 'ApiKey' })),
  truncated: Type.Optional(Type.Boolean({ description: 'Only the newest keys are listed.' })),
});

const MadeKeySchema: TSchema = Type.Object(
  {
    ...keyFields,
    key: Type.String({ description: 'The key itself, shown only here.', examples: ['rdk_k3x9m2pq_…'] }),
  },
  { title: 'MadeApiKey' },
);

export function addKeyRoutes(app: HttpApp, deps: KeyRouteDeps): void {
  const { db } = deps;
  addCreateRoute(app, deps);
  app.get(
    root,
    {
      config: { access: { permission: 'access:keys:view' } },
      schema: {
        operationId: 'listKeys',
        summary: 'List API keys, newest first',
        description: 'Also expired and revoked ones. Secrets are not stored, so they cannot be shown.',
        response: { 200: KeysSchema },
      },
    },
    async (_request, reply) => {
      const keys = await listKeys(db, maxListed + 1);
      return reply.send({
        keys: keys.slice(0, maxListed).map(present),
        ...(keys.length > maxListed ? { truncated: true } : {}),
      });
    },
  );
  app.delete(
    `${root}/:id`,
    {
      config: { access: { permission: 'access:keys:manage' } },
      schema: {
        operationId: 'revokeKey',
        summary: 'Revoke an API key',
        description: 'Takes effect at once, also on other replicas.',
        errors: [404],
        params: Type.Object({ id: Type.String({ maxLength: 100, examples: ['k3x9m2pq'] }) }),
        response: {
          200: Type.Object({
            success: Type.Boolean({ examples: [true] }),
            message: Type.String({ examples: ['API key k3x9m2pq revoked'] }),
          }),
        },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      if (!(await revokeKey(db, id, { actor: subjectOf(request.principal), act: actOf(request) })))
        throw new AppError('SYS_ACCESS_NOT_FOUND', 'not_found', `API key not found: ${id}`);
      deps.onRevoked();
      return reply.send({ success: true, message: `API key ${id} revoked` });
    },
  );
}

function addCreateRoute(app: HttpApp, deps: KeyRouteDeps): void {
  app.post(
    root,
    {
      config: { access: { permission: 'access:keys:manage' } },
      schema: {
        operationId: 'createKey',
        summary: 'Make an API key',
        description:
          'The key has one role, which must not give more than the maker has. It is shown only in this answer. An API key cannot make keys.',
        errors: [409, 422],
        body: NewKeyBody,
        response: { 201: MadeKeySchema },
      },
    },
    async (request, reply) => {
      const { body, principal } = request;
      const { maker, days } = requireMaker(deps, principal, body);
      const scope = (body.scopes ?? null) as Scope | null;
      requireRole(deps.policy, principal, { role: body.role, scope });
      const { text, ...key } = makeKey();
      const stored = await insertKey(deps.db, key, {
        name: body.name,
        role: body.role,
        scope,
        days,
        maker,
        act: actOf(request),
      });
      if (stored === undefined)
        throw new AppError('SYS_ACCESS_TOO_MANY_KEYS', 'conflict', 'you have too many API keys: revoke some');
      return reply.code(201).send({ ...present(stored), key: text });
    },
  );
}

function requireMaker(
  { maxDays, makerOf }: KeyRouteDeps,
  principal: Principal,
  { expires_in_days: asked }: Static<typeof NewKeyBody>,
): Readonly<{ maker: Maker; days: number }> {
  if (maxDays === null)
    throw new AppError(
      'SYS_ACCESS_KEYS_DISABLED',
      'semantic',
      'API keys are not enabled: see auth.api_keys.enabled',
    );
  const maker = makerOf(principal);
  if (maker === undefined) throw denied('an API key cannot make keys');
  const days = asked ?? Math.min(usualDays, maxDays);
  if (days > maxDays)
    throw new AppError(
      'SYS_ACCESS_UNPROCESSABLE',
      'semantic',
      `expires_in_days must not be more than ${maxDays} (auth.api_keys.max_days)`,
    );
  return { maker, days };
}

function requireRole(
  policy: Policy,
  principal: Principal,
  { role, scope }: Readonly<{ role: string; scope: Scope | null }>,
): void {
  if (!policy.hasRole(role))
    throw new AppError('SYS_ACCESS_UNPROCESSABLE', 'semantic', `there is no role ${role}`);
  const isHeld = policy
    .grantsOfRole(role)
    .map((grant) => (scope === null ? grant : { ...grant, scopes: [...grant.scopes, scope] }))
    .every((grant) => includesGrant(principal.grants, grant));
  if (!isHeld) throw denied(`the role ${role} would give the key more than you may do`);
}

function denied(message: string): AppError {
  return new AppError('SYS_AUTH_PERMISSION_DENIED', 'forbidden', message);
}

function present(key: StoredKey) {
  return {
    id: key.id,
    name: key.name,
    role: key.role,
    scopes: key.scope,
    maker: `user:${key.maker}`,
    maker_name: key.makerName,
    created_at: formatTimestamp(key.createdAt),
    expires_at: formatTimestamp(key.expiresAt),
    last_used_at: formatInstant(key.lastUsedAt),
    revoked_at: formatInstant(key.revokedAt),
    revoked_by: key.revokedBy,
  };
}
