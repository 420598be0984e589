import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { BadFile } from './workflow-files.ts';

const maxTold = 5;
const maxToldText = 300;

export type WorkflowsCheckDeps = Readonly<{
  badFiles: () => readonly BadFile[];
  services: readonly string[];
  /** What the services have not, or do not tell, of what workflows call. */
  methodTroubles: () => readonly string[];
}>;

/**
 * What new sagas could not run degrades: a file that says nothing usable, and a workflow that calls a service which is
 * not configured here, or a method that it has not. So does a saga that somebody has inserted without a definition: it would wait unseen. Sagas that wait for a person do not: they are work for people, not a trouble of this process,
 * and a replica that is taken for ill because of them helps nobody. `saga_needs_person` counts them.
 */
export function workflowsCheck(
  db: Queryable,
  { badFiles, services, methodTroubles }: WorkflowsCheckDeps,
): HealthCheck {
  return {
    name: 'workflows',
    critical: false,
    async check() {
      const bad = badFiles().map(({ file, reason }) => `${file}: ${reason}`);
      const unserved = (await findUnserved(db, services)).map(
        ({ workflow, service }) => `${workflow} calls ${service}, which is not configured here`,
      );
      const unknown = (await hasUnknown(db))
        ? [
            'there are sagas without a definition that nobody was asked about: SELECT saga.ask_about_unknown()',
          ]
        : [];
      const uncallable = methodTroubles()
        .slice(0, maxTold)
        .map((text) => text.slice(0, maxToldText));
      const troubles = [...bad.slice(0, maxTold), ...unserved, ...uncallable, ...unknown];
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

/** By its own index, which has no row as a rule. */
async function hasUnknown(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ is_there: boolean }>(sql`
    SELECT EXISTS (
      SELECT 1 FROM saga.saga_states
      WHERE definition_hash IS NULL AND NOT needs_person AND phase IN ('NEW', 'FORWARD', 'COMPENSATING')
    ) AS is_there`);
  return row?.is_there === true;
}
