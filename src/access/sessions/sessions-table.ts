import type { Act } from '../../kernel/audit/act.ts';
import { cleanText } from '../../kernel/text.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/work/wake.ts';
import { keysChannel } from '../keys/keys-table.ts';

/** Notified when sessions are ended before their time. */
export const sessionsChannel = 'access.sessions';

export type SessionTimes = Readonly<{ idleMs: number; absoluteMs: number }>;

/** A session as it is checked. */
export type CheckedSession = Readonly<{
  /** `<issuer>|<subject>`. */
  subject: string;
  name: string;
  /** As the issuer named them at the login. */
  roles: readonly string[];
  createdAt: Date;
}>;

export type StoredSession = CheckedSession &
  Readonly<{ lastSeenAt: Date; expiresAt: Date; address: string | null; agent: string | null }>;

export type NewSession = Readonly<{
  sha256: Buffer;
  /** The session that the browser had before, to be replaced. */
  replaced: Buffer | null;
  subject: string;
  name: string;
  roles: readonly string[];
}>;

/** More logins of one person end the oldest ones. */
const maxSessionsOfSubject = 50;
/** Ended sessions that one login deletes: more than one login adds. */
const maxSwept = 100;

export async function insertSession(
  db: Database,
  { sha256, replaced, subject, name, roles }: NewSession,
  { times, act }: Readonly<{ times: SessionTimes; act: Act }>,
): Promise<void> {
  const { address, agent } = act.request;
  await db.transaction(async (tx) => {
    await sweepSessions(tx, times);
    await tx.query(sql`
      DELETE FROM access.sessions WHERE id_sha256 = ${replaced} OR id_sha256 IN (
        SELECT id_sha256 FROM access.sessions WHERE subject = ${subject}
        ORDER BY created_at DESC, id_sha256 OFFSET ${maxSessionsOfSubject - 1})`);
    await tx.query(sql`
      INSERT INTO access.sessions (id_sha256, subject, name, roles, expires_at, address, agent)
      VALUES (${sha256}, ${subject}, ${name}, ${roles}::text[],
              clock_timestamp() + ${times.absoluteMs}::float8 * interval '1 millisecond', ${address},
              ${agent === null ? null : cleanText(agent, 300)})`);
    await recordAct(tx, act, { resource: 'access/sessions', detail: { change: 'login' } });
    if (replaced !== null) await notify(tx, sessionsChannel);
  });
}

/** Null if there is none, or it has ended. */
export async function findSession(
  db: Queryable,
  sha256: Buffer,
  { idleMs }: SessionTimes,
): Promise<CheckedSession | null> {
  const [row] = await db.query<CheckedSession>(sql`
    SELECT subject, name, roles, created_at AS "createdAt" FROM access.sessions
    WHERE id_sha256 = ${sha256} AND expires_at > clock_timestamp()
      AND last_seen_at > clock_timestamp() - ${idleMs}::float8 * interval '1 millisecond'`);
  return row ?? null;
}

/** A request has shown that the session is in use. One that has ended meanwhile stays so. */
export async function noteSessionUse(db: Queryable, sha256: Buffer, { idleMs }: SessionTimes): Promise<void> {
  await db.query(sql`
    UPDATE access.sessions SET last_seen_at = clock_timestamp()
    WHERE id_sha256 = ${sha256} AND last_seen_at < clock_timestamp() - interval '1 minute'
      AND last_seen_at > clock_timestamp() - ${idleMs}::float8 * interval '1 millisecond'`);
}

/** The session of a logout. False if it had ended before. */
export async function endSession(db: Database, sha256: Buffer, act: Act): Promise<boolean> {
  return db.transaction(async (tx) => {
    const rows = await tx.query(sql`DELETE FROM access.sessions WHERE id_sha256 = ${sha256} RETURNING 1`);
    if (rows.length === 0) return false;
    await recordAct(tx, act, { resource: 'access/sessions', detail: { change: 'logout' } });
    await notify(tx, sessionsChannel);
    return true;
  });
}

export type Ended = Readonly<{ sessions: number; keys: number }>;

/** All sessions of a person, and the keys that the person has made. */
export async function endSessionsOf(db: Database, subject: string, act: Act): Promise<Ended> {
  return db.transaction(async (tx) => {
    const sessions = await tx.query(sql`DELETE FROM access.sessions WHERE subject = ${subject} RETURNING 1`);
    const keys = await tx.query(sql`
      UPDATE access.api_keys SET revoked_at = clock_timestamp(), revoked_by = ${act.actor.id}
      WHERE maker = ${subject} AND revoked_at IS NULL AND expires_at > clock_timestamp() RETURNING 1`);
    const ended = { sessions: sessions.length, keys: keys.length };
    await recordAct(tx, act, {
      resource: `access/sessions/${subject}`,
      items: ended.sessions + ended.keys,
      detail: { change: 'ended', ...ended },
    });
    await notify(tx, sessionsChannel);
    await notify(tx, keysChannel);
    return ended;
  });
}

/** Those that have not ended, the latest login first. */
export function listSessions(
  db: Queryable,
  { idleMs }: Pick<SessionTimes, 'idleMs'>,
  limit: number,
): Promise<readonly StoredSession[]> {
  return db.query<StoredSession>(sql`
    SELECT subject, name, roles, created_at AS "createdAt", last_seen_at AS "lastSeenAt", expires_at AS "expiresAt",
           address, agent
    FROM access.sessions
    WHERE expires_at > clock_timestamp()
      AND last_seen_at > clock_timestamp() - ${idleMs}::float8 * interval '1 millisecond'
    ORDER BY created_at DESC, id_sha256 LIMIT ${limit}`);
}

/** Deletes some of the sessions that have ended by themselves. */
async function sweepSessions(tx: Queryable, { idleMs }: SessionTimes): Promise<void> {
  await tx.query(sql`
    DELETE FROM access.sessions WHERE id_sha256 IN (
      SELECT id_sha256 FROM access.sessions
      WHERE expires_at <= clock_timestamp()
        OR last_seen_at <= clock_timestamp() - ${idleMs}::float8 * interval '1 millisecond'
      LIMIT ${maxSwept} FOR UPDATE SKIP LOCKED)`);
}
