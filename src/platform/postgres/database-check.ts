import { codeOf, messageOf } from '../../kernel/errors.ts';
import type { HealthCheck } from '../http/readiness.ts';
import type { Queryable, ServerDatabase } from './database.ts';
import { isRejectedLogin } from './login.ts';
import { sql } from './sql.ts';

export function databaseCheck(db: Queryable): HealthCheck {
  return {
    name: 'database',
    critical: true,
    async check() {
      try {
        // Fails if the role of the connection was dropped; `SELECT 1` would not.
        await db.query(sql`SELECT current_user`);
        return { status: 'healthy' };
      } catch (error) {
        return { status: 'unhealthy', message: describe(error) };
      }
    },
  };
}

function describe(error: unknown): string {
  if (codeOf(error) === undefinedObject)
    return `the database role of this process was dropped (${messageOf(error)}); provide a login that exists`;
  if (isRejectedLogin(error)) return `${messageOf(error)}; provide a login that PostgreSQL accepts`;
  return messageOf(error);
}

const undefinedObject = '42704';

/** A login that is not accepted breaks nothing as long as the previous one works. */
export function loginCheck(db: Pick<ServerDatabase, 'loginTrouble'>): HealthCheck {
  return {
    name: 'database_login',
    critical: false,
    check() {
      const trouble = db.loginTrouble();
      return Promise.resolve(
        trouble === null ? { status: 'healthy' } : { status: 'degraded', message: trouble },
      );
    },
  };
}
