import { randomBytes } from 'node:crypto';
import type { Act } from '../../kernel/audit/act.ts';
import { KeyError } from '../../kernel/protect/keyring.ts';
import { recordAct } from '../audit/record-act.ts';
import type { Database } from '../postgres/database.ts';
import { sql } from '../postgres/sql.ts';
import type { MasterKey } from './master-key.ts';

/**
 * Work on the data keys of all slices, without a server and without reading what they encrypt. Each key is changed in a
 * transaction of its own, with its audit event: a run that was killed is repeated.
 */
export type ManageDeps = Readonly<{ db: Database; master: MasterKey; act: Act }>;

export type KeyRow = Readonly<{
  id: number;
  slice: string;
  purpose: 'payload' | 'lookup';
  /** `2026-11`; null for a lookup key. */
  month: string | null;
  turn: number;
  wrapped: string;
  createdMs: number;
  rewrappedMs: number | null;
}>;

export type KeyStatus = Omit<KeyRow, 'wrapped'> &
  Readonly<{
    /** The master key that wrapped it: `file:<name>`, or `vault:v<version>`. */
    wrappedBy: string;
    /** Why it cannot be used; null if it can. */
    trouble: string | null;
  }>;

export async function listKeys({
  db,
  master,
}: Readonly<{ db: Pick<Database, 'query'>; master: MasterKey | null }>): Promise<readonly KeyStatus[]> {
  const keys: KeyStatus[] = [];
  for (const { wrapped, ...key } of await selectKeys(db)) {
    const trouble =
      master === null ? 'protect.encrypt names no master key' : await troubleWith(master.unwrap(wrapped));
    keys.push({ ...key, wrappedBy: wrapperOf(wrapped), trouble });
  }
  return keys;
}

export type Rewrapped = Readonly<{
  rewrapped: readonly number[];
  /** They already were under the newest master key. */
  current: readonly number[];
  failed: readonly Readonly<{ id: number; trouble: string }>[];
}>;

/** Puts all data keys under the newest master key. One that cannot be unwrapped stays as it is, and the others go on. */
export async function rewrapKeys(
  { db, master, act }: ManageDeps,
  onKey: (id: number) => void = () => {},
): Promise<Rewrapped> {
  const done = {
    rewrapped: [] as number[],
    current: [] as number[],
    failed: [] as Rewrapped['failed'][number][],
  };
  for (const { id, slice, wrapped } of await selectKeys(db)) {
    try {
      const renewed = await renew(master, wrapped);
      if (renewed === null) done.current.push(id);
      else {
        await db.transaction(async (tx) => {
          // Somebody else may have rewrapped it: that is as good.
          const rows = await tx.query(sql`
            UPDATE platform.data_keys SET wrapped = ${renewed}, rewrapped_at = clock_timestamp()
            WHERE id = ${id} AND wrapped = ${wrapped} RETURNING 1`);
          if (rows.length > 0)
            await recordAct(tx, act, {
              resource: `platform/data_keys/${id}`,
              detail: { slice, from: wrapperOf(wrapped), to: wrapperOf(renewed) },
            });
        });
        done.rewrapped.push(id);
      }
    } catch (error) {
      if (!(error instanceof KeyError)) throw error;
      done.failed.push({ id, trouble: error.message });
    }
    onKey(id);
  }
  return done;
}

/** Null if it is current. What cannot be unwrapped again is not stored. */
async function renew(master: MasterKey, wrapped: string): Promise<string | null> {
  const renewed = await master.rewrap(wrapped);
  if (renewed !== null) await master.unwrap(renewed);
  return renewed;
}

/** Makes a new data key, which encrypts from now on; servers notice it within half a minute. */
export async function rotateKey({ db, master, act }: ManageDeps, slice: string): Promise<number> {
  const wrapped = await master.wrap(randomBytes(32));
  return db.transaction(async (tx) => {
    const [key] = await tx.query<{ id: number }>(sql`
      INSERT INTO platform.data_keys (slice, purpose, month, turn, wrapped)
      SELECT ${slice}, 'payload', m.month,
             COALESCE((SELECT max(k.turn) + 1 FROM platform.data_keys k
                       WHERE k.slice = ${slice} AND k.purpose = 'payload' AND k.month = m.month), 0),
             ${wrapped}
      FROM (SELECT date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC')::date AS month) AS m
      RETURNING id`);
    if (key === undefined) throw new Error('the new data key was not stored');
    await recordAct(tx, act, { resource: `platform/data_keys/${key.id}`, detail: { slice } });
    return key.id;
  });
}

function selectKeys(db: Pick<Database, 'query'>): Promise<readonly KeyRow[]> {
  return db.query<KeyRow>(sql`
    SELECT id, slice, purpose, CASE WHEN purpose = 'payload' THEN to_char(month, 'YYYY-MM') END AS month, turn, wrapped,
           date_part('epoch', created_at) * 1000 AS "createdMs",
           date_part('epoch', rewrapped_at) * 1000 AS "rewrappedMs"
    FROM platform.data_keys ORDER BY id`);
}

/** Never the wrapped key itself. */
function wrapperOf(wrapped: string): string {
  return wrapped.split(':', 2).join(':');
}

async function troubleWith(asked: Promise<unknown>): Promise<string | null> {
  try {
    await asked;
    return null;
  } catch (error) {
    if (error instanceof KeyError) return error.message;
    throw error;
  }
}
