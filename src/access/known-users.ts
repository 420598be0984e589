import type { Principal } from '../kernel/access/principal.ts';
import type { Rights } from '../kernel/access/rights.ts';
import type { Policy } from '../kernel/access/roles.ts';
import type { Database, Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import { subjectsOf } from './authenticate.ts';
import type { ApiKeys } from './keys/api-keys.ts';
import type { Maker } from './keys/keys-table.ts';

export type RightsDeps = Readonly<{
  db: Database;
  policy: Policy;
  /** Null: keys are not enabled. */
  keys: Pick<ApiKeys, 'principalOf' | 'makerOf'> | null;
  /** The token from which a principal of a request in progress comes. */
  makerOf: (principal: Principal) => Maker | undefined;
}>;

/**
 * What subjects may do without a request: the roles of users are those of the newest token that any replica has seen,
 * so a right that was taken away at the issuer is lost with the next token.
 */
export function createRights({ db, policy, keys, makerOf }: RightsDeps): Rights {
  return {
    areKept: true,
    async keep(principal) {
      const maker = makerOf(principal);
      if (maker !== undefined) await keepUser(db, principal.type, maker);
    },
    async principalOf(subject) {
      const [, kind, id = ''] = /^(key|user):(.*)$/s.exec(subject) ?? [];
      if (kind === undefined) return null;
      if (kind === 'key') return (await keys?.principalOf(id)) ?? null;
      const known = await findUser(db, id);
      const grants = policy.grantsFor(subjectsOf(id, known?.roles ?? []));
      const roles = [...new Set(grants.map(({ role }) => role))];
      return { type: known?.type ?? 'user', id, name: known?.name ?? id, roles, grants };
    },
    async personOf(subject) {
      const [, id] = /^key:(.*)$/s.exec(subject) ?? [];
      return (id === undefined ? null : await keys?.makerOf(id)) ?? subject;
    },
  };
}

/** Without authentication. */
export const everybodysRights = {
  areKept: false,
  keep: async () => {},
  personOf: async (subject: string) => subject,
} as const satisfies Partial<Rights>;

type KnownUser = Readonly<{ type: 'user' | 'service'; name: string; roles: readonly string[] }>;

async function findUser(db: Queryable, id: string): Promise<KnownUser | null> {
  const [row] = await db.query<KnownUser>(sql`
    SELECT type, name, roles FROM access.known_users WHERE id = ${id}`);
  return row ?? null;
}

async function keepUser(
  db: Queryable,
  type: Principal['type'],
  { id, name, roles, issuedAtMs }: Maker,
): Promise<void> {
  await db.query(sql`
    INSERT INTO access.known_users (id, type, name, roles, roles_at)
    VALUES (${id}, ${type}, ${name}, ${roles}::text[], to_timestamp(${issuedAtMs}::float8 / 1000))
    ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, roles = EXCLUDED.roles, roles_at = EXCLUDED.roles_at
    WHERE known_users.roles_at < EXCLUDED.roles_at`);
}

/** What a newer token says about a user who is known. */
export async function noteUser(db: Queryable, { id, name, roles, issuedAtMs }: Maker): Promise<void> {
  await db.query(sql`
    UPDATE access.known_users
    SET name = ${name}, roles = ${roles}::text[], roles_at = to_timestamp(${issuedAtMs}::float8 / 1000)
    WHERE id = ${id} AND roles_at < to_timestamp(${issuedAtMs}::float8 / 1000)`);
}
