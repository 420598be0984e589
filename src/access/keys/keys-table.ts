import type { Act } from '../../kernel/audit/act.ts';
import type { Scope } from '../../kernel/access/scope.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/work/wake.ts';
import type { ApiKey } from './key-format.ts';

/** Notified when a key is revoked or its maker's roles change. */
export const keysChannel = 'access.keys';

export type Maker = Readonly<{ id: string; name: string; roles: readonly string[]; issuedAtMs: number }>;

export type StoredKey = Readonly<{
  id: string;
  name: string;
  role: string;
  scope: Scope | null;
  maker: string;
  makerName: string;
  createdAt: Date;
  expiresAt: Date;
  lastUsedAt: Date | null;
  revokedAt: Date | null;
  revokedBy: string | null;
}>;

const columns: Sql = sql`
  id, name, role, scope, maker, maker_name AS "makerName", created_at AS "createdAt", expires_at AS "expiresAt",
  last_used_at AS "lastUsedAt", revoked_at AS "revokedAt", revoked_by AS "revokedBy"`;

/** A key as it is checked. */
export type CheckedKey = Readonly<{
  id: string;
  secretSha256: Buffer;
  name: string;
  role: string;
  scope: Scope | null;
  maker: string;
  makerRoles: readonly string[];
  isRevoked: boolean;
  isExpired: boolean;
}>;

export type NewKey = Readonly<{
  name: string;
  role: string;
  scope: Scope | null;
  days: number;
  maker: Maker;
}>;

const maxKeysOfMaker = 100;

/** Undefined if the maker has as many keys in use as allowed. */
export async function insertKey(
  db: Database,
  key: ApiKey,
  { act, ...wanted }: NewKey & Readonly<{ act: Act }>,
): Promise<StoredKey | undefined> {
  return db.transaction(async (tx) => {
    const stored = await tryInsert(tx, key, wanted);
    if (stored !== undefined)
      await recordAct(tx, act, {
        resource: `access/keys/${stored.id}`,
        detail: {
          change: 'made',
          name: stored.name,
          role: stored.role,
          scopes: stored.scope,
          days: wanted.days,
        },
      });
    return stored;
  });
}

async function tryInsert(
  tx: Queryable,
  { id, secretSha256 }: ApiKey,
  { name, role, scope, days, maker }: NewKey,
): Promise<StoredKey | undefined> {
  const [row] = await tx.query<StoredKey>(sql`
    INSERT INTO access.api_keys
      (id, secret_sha256, name, role, scope, maker, maker_name, maker_roles, maker_roles_at, expires_at)
    SELECT ${id}, ${secretSha256}, ${name}, ${role}, ${scope === null ? null : JSON.stringify(scope)}::jsonb,
           ${maker.id}, ${maker.name}, ${maker.roles}::text[], to_timestamp(${maker.issuedAtMs}::float8 / 1000),
           clock_timestamp() + ${days} * interval '1 day'
    WHERE (
      SELECT count(*) FROM access.api_keys
      WHERE maker = ${maker.id} AND revoked_at IS NULL AND expires_at > clock_timestamp()) < ${maxKeysOfMaker}
    RETURNING ${columns}`);
  return row;
}

export async function findKey(db: Queryable, id: string): Promise<CheckedKey | null> {
  const [row] = await db.query<CheckedKey>(sql`
    SELECT id, secret_sha256 AS "secretSha256", name, role, scope, maker, maker_roles AS "makerRoles",
           revoked_at IS NOT NULL AS "isRevoked", expires_at <= clock_timestamp() AS "isExpired"
    FROM access.api_keys WHERE id = ${id}`);
  return row ?? null;
}

/** The newest first. */
export function listKeys(db: Queryable, limit: number): Promise<readonly StoredKey[]> {
  return db.query<StoredKey>(sql`
    SELECT ${columns} FROM access.api_keys ORDER BY created_at DESC, id DESC LIMIT ${limit}`);
}

/** False if there is no such key. A key that was revoked before stays as it is. */
export async function revokeKey(
  db: Database,
  id: string,
  { actor, act }: Readonly<{ actor: string; act: Act }>,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const rows = await tx.query(sql`
      UPDATE access.api_keys
      SET revoked_at = COALESCE(revoked_at, clock_timestamp()), revoked_by = COALESCE(revoked_by, ${actor})
      WHERE id = ${id} RETURNING 1`);
    if (rows.length === 0) return false;
    await recordAct(tx, act, { resource: `access/keys/${id}`, detail: { change: 'revoked' } });
    await notify(tx, keysChannel);
    return true;
  });
}

export async function noteUse(db: Queryable, id: string): Promise<void> {
  await db.query(sql`
    UPDATE access.api_keys SET last_used_at = date_trunc('minute', clock_timestamp())
    WHERE id = ${id} AND (last_used_at IS NULL OR last_used_at < date_trunc('minute', clock_timestamp()))`);
}

/** What the newest token of a maker says holds for all keys of that maker. */
export async function noteMaker(db: Database, { id, name, roles, issuedAtMs }: Maker): Promise<void> {
  const changed = await db.query<{ differs: boolean }>(sql`
    UPDATE access.api_keys k
    SET maker_roles = ${roles}::text[], maker_name = ${name},
        maker_roles_at = to_timestamp(${issuedAtMs}::float8 / 1000)
    FROM access.api_keys before
    WHERE k.maker = ${id} AND before.id = k.id AND k.revoked_at IS NULL
      AND k.maker_roles_at < to_timestamp(${issuedAtMs}::float8 / 1000)
    RETURNING before.maker_roles IS DISTINCT FROM k.maker_roles AS differs`);
  if (changed.some(({ differs }) => differs)) await notify(db, keysChannel);
}
