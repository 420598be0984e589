import { createMasterKey } from '../../compose/create-master-key.ts';
import { migrationSources } from '../../compose.ts';
import type { Config } from '../../config/config.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { migrationStatus, type MigrationStatus } from '../../platform/postgres/migrate.ts';
import { missingRights, type MissingRight } from '../../platform/postgres/missing-rights.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { examineAuditChain, examineAuditRights, examineAuditSeal } from './checks/audit-log.ts';
import { examineAuditMonths } from './checks/audit-months.ts';
import { examineDeadRows } from './checks/dead-rows.ts';
import { examineIndexes } from './checks/invalid-indexes.ts';
import { examineMessageEncryption } from './checks/message-encryption.ts';
import { examineRemovedParts } from './checks/removed-parts.ts';
import { examineRetryPolicies } from './checks/retry-policies.ts';
import { examineStuckRows } from './checks/stuck-rows.ts';
import { attempt, ok, problem, skipped, warning, type Finding } from './finding.ts';

export type SchemaFacts = Readonly<{
  status: readonly Pick<MigrationStatus, 'slice' | 'number' | 'name' | 'state'>[];
  /** The server applies migrations when it starts. */
  appliesItself: boolean;
  canCreate: boolean;
}>;

export async function* examineSchema(db: Queryable, config: Config): AsyncGenerator<Finding> {
  let isEmpty = false;
  yield await attempt('migrations', async () => {
    const status = await migrationStatus(db, migrationSources);
    isEmpty = status.every(({ state }) => state === 'pending');
    return judgeMigrations({
      status,
      appliesItself: config.database.migrate,
      canCreate: await canCreateSchemas(db),
    });
  });
  if (isEmpty) {
    yield skipped('rights', 'not checked: the schema does not exist yet');
    return;
  }
  const schemas = migrationSources.map(({ slice }) => slice);
  yield await attempt('rights', async () => judgeRights(await missingRights(db, schemas)));
  yield await attempt('indexes', () => examineIndexes(db, schemas));
  yield await attempt('dead_rows', () => examineDeadRows(db, schemas));
  yield await attempt('stuck_rows', () => examineStuckRows(db, schemas));
  yield await attempt('partitions', () => examineAuditMonths(db));
  yield await attempt('audit_rights', () => examineAuditRights(db, /^prod/i.test(config.app.environment)));
  yield await attempt('audit_seal', () => examineAuditSeal(db));
  yield await attempt('audit_chain', () => examineAuditChain(db));
  yield await attempt('retry_policies', () => examineRetryPolicies(db, config));
  yield await attempt('removed_parts', () => examineRemovedParts(db, config.protect));
  yield await attempt('message_encryption', () =>
    examineMessageEncryption(db, { ...config, master: createMasterKey(config.protect) }),
  );
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
      'run the version of Redrive that applied them, or a later one',
    );
  const pending = inState('pending');
  if (pending.length > 0) return judgePending(pending, status.length, { appliesItself, canCreate });
  const unknown = inState('unknown');
  if (unknown.length > 0)
    return warning(
      'migrations',
      `applied by a later version of Redrive: ${unknown.join(', ')}`,
      'run that version, or roll its migrations back with it',
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
      `${found}; the user has no permission to create schemas`,
      'run `redrive migrate up` as the owner of the database, or GRANT CREATE ON DATABASE to the user',
    );
  return appliesItself
    ? warning('migrations', found, 'run `redrive migrate up`, or start `redrive serve`, which applies them')
    : problem('migrations', found, 'run `redrive migrate up` (database.migrate is off)');
}

async function canCreateSchemas(db: Queryable): Promise<boolean> {
  const rows = await db.query<{ can: boolean }>(sql`
    SELECT has_database_privilege(current_database(), 'CREATE') AS can`);
  return rows[0]?.can === true;
}

function judgeRights(missing: readonly MissingRight[]): Finding {
  if (missing.length === 0) return ok('rights', 'the role has all privileges that Redrive needs');
  const objects = missing.map(({ rights, object }) => `${rights.join(', ')} on ${object}`);
  return problem(
    'rights',
    `the role lacks ${objects.join('; ')}`,
    `as the owner, run deploy/postgres/server.sql for this role, or: ${missing.map(({ grant }) => `${grant};`).join(' ')}`,
  );
}
