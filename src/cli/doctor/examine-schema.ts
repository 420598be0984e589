import { migrationSources } from '../../compose.ts';
import type { Config } from '../../config.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { migrationStatus, type MigrationStatus } from '../../platform/postgres/migrate.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { attempt, ok, problem, warning, type Finding } from './finding.ts';

export type SchemaFacts = Readonly<{
  status: readonly Pick<MigrationStatus, 'slice' | 'number' | 'name' | 'state'>[];
  /** Whether the server applies migrations at its start. */
  appliesItself: boolean;
  canCreate: boolean;
}>;

export async function* examineSchema(db: Queryable, config: Config): AsyncGenerator<Finding> {
  yield await attempt('migrations', async () =>
    judgeMigrations({
      status: await migrationStatus(db, migrationSources),
      appliesItself: config.database.migrate,
      canCreate: await canCreateSchemas(db),
    }),
  );
  yield await attempt('rights', async () => judgeRights(await tablesWithoutRights(db)));
}

export function judgeMigrations({ status, appliesItself, canCreate }: SchemaFacts): Finding {
  const inState = (state: MigrationStatus['state']): readonly string[] =>
    status
      .filter((one) => one.state === state)
      .map(({ slice, number, name }) => `${slice}/${number} ${name}`);
  const changed = inState('changed');
  if (changed.length > 0)
    return problem(
      'migrations',
      `changed after they were applied: ${changed.join(', ')}`,
      'run the version of Redrive that the database was made with, or a later one',
    );
  const pending = inState('pending');
  if (pending.length > 0) return judgePending(pending, status.length, { appliesItself, canCreate });
  const unknown = inState('unknown');
  if (unknown.length > 0)
    return warning(
      'migrations',
      `a later version of Redrive was here: ${unknown.join(', ')}`,
      'run that version, or take its migrations back with it',
    );
  return ok('migrations', `all ${status.length} applied`);
}

function judgePending(
  pending: readonly string[],
  total: number,
  { appliesItself, canCreate }: Pick<SchemaFacts, 'appliesItself' | 'canCreate'>,
): Finding {
  const found = `${pending.length} of ${total} pending: ${pending.join(', ')}`;
  if (!canCreate)
    return problem(
      'migrations',
      `${found}; and the user may not create schemas`,
      'run `redrive migrate up` as the owner of the database, or GRANT CREATE ON DATABASE to the user',
    );
  return appliesItself
    ? warning('migrations', found, 'run `redrive migrate up`, or let `redrive serve` apply them at its start')
    : problem('migrations', found, 'run `redrive migrate up`: with database.migrate off the server does not');
}

async function canCreateSchemas(db: Queryable): Promise<boolean> {
  const rows = await db.query<{ can: boolean }>(sql`
    SELECT has_database_privilege(current_database(), 'CREATE') AS can`);
  return rows[0]?.can === true;
}

async function tablesWithoutRights(db: Queryable): Promise<readonly string[]> {
  const slices = migrationSources.map(({ slice }) => slice);
  const rows = await db.query<{ name: string }>(sql`
    SELECT nspname || '.' || relname AS name
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = ANY(${slices}) AND relkind IN ('r', 'p')
      AND NOT (has_schema_privilege(pg_namespace.oid, 'USAGE')
               AND has_table_privilege(pg_class.oid, 'SELECT') AND has_table_privilege(pg_class.oid, 'INSERT')
               AND has_table_privilege(pg_class.oid, 'UPDATE') AND has_table_privilege(pg_class.oid, 'DELETE'))
    ORDER BY name`);
  return rows.map(({ name }) => name);
}

function judgeRights(tables: readonly string[]): Finding {
  if (tables.length === 0) return ok('rights', 'the user may read and write every table of Redrive there is');
  return problem(
    'rights',
    `the user may not read and write ${tables.join(', ')}`,
    'GRANT USAGE on the schemas and SELECT, INSERT, UPDATE, DELETE on their tables to it, or let it own them',
  );
}
