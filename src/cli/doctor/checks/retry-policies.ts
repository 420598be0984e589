import type { Config } from '../../../config/config.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { ok, skipped, warning, type Finding } from '../finding.ts';

type Stored = Readonly<{ name: string; state: string; isConfigured: boolean }>;

/** Policies that need a person, and policies of this configuration that no server looks after. */
export async function examineRetryPolicies(
  db: Queryable,
  { dlq }: Readonly<{ dlq: Pick<Config['dlq'], 'autoRetry'> }>,
): Promise<Finding> {
  const [table] = await db.query<{ exists: boolean }>(sql`
    SELECT to_regclass('dlq.retry_policies') IS NOT NULL AS exists`);
  if (table?.exists !== true) return skipped('retry_policies', 'not checked: migrations are pending');
  const stored = await db.query<Stored>(sql`
    SELECT name, state, place IS NOT NULL AS "isConfigured" FROM dlq.retry_policies ORDER BY place, name`);
  const names = dlq.autoRetry.map(({ name }) => name);
  const working = stored.filter(({ isConfigured }) => isConfigured);
  if (names.length === 0 && working.length === 0) return skipped('retry_policies', 'none configured');
  const disabled = working.filter(({ state }) => state === 'disabled').map(({ name }) => name);
  if (disabled.length > 0)
    return warning(
      'retry_policies',
      `disabled: ${disabled.join(', ')}`,
      'run `redrive dlq policies show <name>`, fix the cause, and resume it with `redrive dlq policies resume <name>`',
    );
  // Doctor may run with less than a server has.
  if (names.length === 0)
    return ok('retry_policies', `the servers have ${working.map(({ name }) => name).join(', ')}`);
  const unknown = names.filter((name) => !working.some((one) => one.name === name));
  const foreign = working.filter(({ name }) => !names.includes(name)).map(({ name }) => name);
  const differences = [
    ...(unknown.length === 0 ? [] : [`no server looks after ${unknown.join(', ')}`]),
    ...(foreign.length === 0 ? [] : [`the servers also have ${foreign.join(', ')}`]),
  ];
  if (differences.length > 0)
    return warning(
      'retry_policies',
      differences.join('; '),
      'start a process with the role workers and this configuration, and stop those with another one',
    );
  const paused = working.filter(({ state }) => state === 'paused').length;
  return ok('retry_policies', `${working.length} configured, ${paused} paused`);
}
