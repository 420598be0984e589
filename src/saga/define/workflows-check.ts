import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { BadFile } from './workflow-files.ts';

const maxListed = 5;
const maxListedText = 300;

export type WorkflowsCheckDeps = Readonly<{
  badFiles: () => readonly BadFile[];
  services: readonly string[];
  /** Methods that workflows call and services lack, or do not list. */
  methodProblems: () => readonly string[];
}>;

/**
 * Degraded if new sagas could not run: a bad workflow file, or a workflow that calls an unconfigured service or a
 * missing method. Also if a saga was inserted without a definition, which nobody would notice. Sagas that need attention
 * do not degrade a replica: the metric `saga_needs_attention` counts them.
 */
export function workflowsCheck(
  db: Queryable,
  { badFiles, services, methodProblems }: WorkflowsCheckDeps,
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
        ? ['there are sagas without a definition: run SELECT saga.ask_about_unknown()']
        : [];
      const uncallable = methodProblems()
        .slice(0, maxListed)
        .map((text) => text.slice(0, maxListedText));
      const problems = [...bad.slice(0, maxListed), ...unserved, ...uncallable, ...unknown];
      return problems.length === 0
        ? { status: 'healthy' }
        : { status: 'degraded', message: problems.join('; ') };
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
    LIMIT ${maxListed}`);
}

/** Uses an index of its own, which is usually empty. */
async function hasUnknown(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ is_there: boolean }>(sql`
    SELECT EXISTS (
      SELECT 1 FROM saga.saga_states
      WHERE definition_hash IS NULL AND NOT needs_attention AND phase IN ('NEW', 'FORWARD', 'COMPENSATING')
    ) AS is_there`);
  return row?.is_there === true;
}
