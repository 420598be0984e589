import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { BadFile } from './workflow-files.ts';

const maxTold = 5;

/**
 * What new sagas could not run degrades: a file that says nothing usable, and a workflow that calls a service which is
 * not configured here. Sagas that wait for a person do not: they are work for people, not a trouble of this process,
 * and a replica that is taken for ill because of them helps nobody. `saga_needs_person` counts them.
 */
export function workflowsCheck(
  db: Queryable,
  { badFiles, services }: Readonly<{ badFiles: () => readonly BadFile[]; services: readonly string[] }>,
): HealthCheck {
  return {
    name: 'workflows',
    critical: false,
    async check() {
      const bad = badFiles().map(({ file, reason }) => `${file}: ${reason}`);
      const unserved = (await findUnserved(db, services)).map(
        ({ workflow, service }) => `${workflow} calls ${service}, which is not configured here`,
      );
      const troubles = [...bad.slice(0, maxTold), ...unserved];
      return troubles.length === 0
        ? { status: 'healthy' }
        : { status: 'degraded', message: troubles.join('; ') };
    },
  };
}

type Unserved = Readonly<{ workflow: string; service: string }>;

async function findUnserved(db: Queryable, services: readonly string[]): Promise<readonly Unserved[]> {
  return db.query<Unserved>(sql`
    SELECT DISTINCT w.name AS workflow, step ->> 'service' AS service
    FROM saga.workflows w
    JOIN saga.workflow_definitions d ON d.hash = w.current_hash
    CROSS JOIN LATERAL jsonb_array_elements(d.definition -> 'steps') AS step
    WHERE step ->> 'service' <> ALL (${services}::text[])
    ORDER BY 1, 2
    LIMIT ${maxTold}`);
}
