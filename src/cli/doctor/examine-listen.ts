import { randomUUID } from 'node:crypto';
import type { Config } from '../../config.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { Database, DedicatedConnection } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { ok, problem, skipped, warning, type Finding } from './finding.ts';

const roundTripMs = 2000;

/**
 * Sends a notification to itself, the way the server is woken: over the direct way if there is one. A pooler in
 * transaction mode takes LISTEN without a word and never delivers, so only the round trip tells.
 */
export async function examineListen(db: Database, database: Config['database']): Promise<Finding> {
  if (database.wake === 'poll') return skipped('listen', 'database.wake is poll: the server does not listen');
  const direct = database.mode === 'server' && database.direct !== undefined;
  let connection: DedicatedConnection;
  try {
    connection = await db.connect(() => {});
  } catch (error) {
    return problem(
      'listen',
      `no connection to listen on: ${messageOf(error)}`,
      direct ? 'correct database.direct_url' : 'see the checks above',
    );
  }
  try {
    return (await hearsItself(db, connection))
      ? ok('listen', `notifications arrive${direct ? ' over database.direct_url' : ''}`)
      : warning(
          'listen',
          `a notification did not arrive within ${roundTripMs / 1000} s: probably a pooler in transaction mode stands between`,
          'name a way past the pooler in database.direct_url, or set database.wake to poll',
        );
  } finally {
    await connection.close();
  }
}

async function hearsItself(db: Database, connection: DedicatedConnection): Promise<boolean> {
  // A channel of its own: no running server is woken.
  const channel = `redrive_doctor_${randomUUID()}`;
  const heard = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => heard.resolve(false), roundTripMs);
  await connection.listen(channel, () => heard.resolve(true));
  await db.query(sql`SELECT pg_notify(${channel}, '')`);
  const hasHeard = await heard.promise;
  clearTimeout(timer);
  return hasHeard;
}
