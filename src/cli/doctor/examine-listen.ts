import { randomUUID } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { Database, DedicatedConnection } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { ok, problem, skipped, warning, type Finding } from './finding.ts';

/** A notification takes milliseconds; a pooler never delivers it. */
const roundTripMs = 2000;

/**
 * Sends itself a notification over the connection that the server would use. A pooler in transaction mode accepts
 * LISTEN but never delivers, so only a round trip shows whether it works.
 */
export async function examineListen(db: Database, database: Config['database']): Promise<Finding> {
  if (database.wake === 'poll') return skipped('listen', 'not used: database.wake is poll');
  const direct = database.mode === 'server' && database.direct !== undefined;
  let connection: DedicatedConnection;
  try {
    connection = await db.connect(() => {});
  } catch (error) {
    return problem(
      'listen',
      `cannot open a LISTEN connection: ${messageOf(error)}`,
      direct ? 'correct database.direct_url' : 'see the checks above',
    );
  }
  try {
    return (await receivesOwnNotification(db, connection))
      ? ok('listen', `works${direct ? ' over database.direct_url' : ''}`)
      : warning(
          'listen',
          `no notification within ${roundTripMs / 1000} s: probably a pooler in transaction mode`,
          'set database.direct_url to connect without the pooler, or set database.wake to poll',
        );
  } finally {
    await connection.close();
  }
}

async function receivesOwnNotification(db: Database, connection: DedicatedConnection): Promise<boolean> {
  // Its own channel, so that no server is woken.
  const channel = `redrive_doctor_${randomUUID()}`;
  const heard = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => heard.resolve(false), roundTripMs);
  await connection.listen(channel, () => heard.resolve(true));
  await db.query(sql`SELECT pg_notify(${channel}, '')`);
  const hasHeard = await heard.promise;
  clearTimeout(timer);
  return hasHeard;
}
