import { messageOf } from '../../kernel/errors.ts';
import type { HealthCheck } from '../http/readiness.ts';
import type { Database } from './database.ts';
import { sql } from './sql.ts';

export function databaseCheck(db: Database): HealthCheck {
  return {
    name: 'database',
    critical: true,
    async check() {
      try {
        await db.query(sql`SELECT 1`);
        return { status: 'healthy' };
      } catch (error) {
        return { status: 'unhealthy', message: messageOf(error) };
      }
    },
  };
}
