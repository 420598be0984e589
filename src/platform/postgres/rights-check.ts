import type { Clock } from '../../kernel/clock.ts';
import type { CheckResult, HealthCheck } from '../http/readiness.ts';
import type { Database } from './database.ts';
import { missingRights } from './missing-rights.ts';

/** Rights change rarely; readiness is asked every few seconds. */
const lookEveryMs = 10_000;
const named = 5;

/** Degraded, not out of service: what the role may do still works. */
export function rightsCheck(db: Database, clock: Clock, schemas: readonly string[]): HealthCheck {
  let latest: CheckResult = { status: 'healthy' };
  let lookAtMs = Number.NEGATIVE_INFINITY;
  return {
    name: 'rights',
    critical: false,
    async check() {
      if (clock.monotonicMs() < lookAtMs) return latest;
      const missing = await missingRights(db, schemas);
      lookAtMs = clock.monotonicMs() + (missing.length === 0 ? lookEveryMs : 0);
      const some = missing.slice(0, named).map(({ rights, object }) => `${rights.join(', ')} on ${object}`);
      const more = missing.length > named ? `, and on ${missing.length - named} more` : '';
      latest =
        missing.length === 0
          ? { status: 'healthy' }
          : {
              status: 'unhealthy',
              message: `the database role lacks ${some.join('; ')}${more}: run \`redrive doctor\``,
            };
      return latest;
    },
  };
}
