import { verifyChain } from '../../../compose/verify-audit.ts';
import { secondMs } from '../../../kernel/duration.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { formatSeconds } from '../../output/progress.ts';
import { ok, problem, warning, type Finding } from '../finding.ts';

/** The whole log may take hours: `redrive audit verify` checks it. */
const verifyMs = 5 * secondMs;
/** As the alert AuditSealStale. */
const staleSeconds = 600;

/** Whether the chain fits to the events. A long one is followed for some seconds only. */
export async function examineAuditChain(db: Queryable): Promise<Finding> {
  const { finding, nextAfterBlock, head } = await verifyChain(db, {}, verifyMs);
  if (finding !== null)
    return problem(
      'audit_chain',
      `the first bad block is ${finding.block}: ${finding.message}`,
      'somebody changed the audit log: keep the database as it is, and compare it with a backup and with the anchors (`redrive audit verify --anchors`)',
    );
  if (head === null) return ok('audit_chain', 'nothing is sealed yet');
  if (nextAfterBlock === null) return ok('audit_chain', `all ${head.block} blocks fit to their events`);
  return ok(
    'audit_chain',
    `the first ${nextAfterBlock} of ${head.block} blocks fit to their events; \`redrive audit verify\` checks all`,
  );
}

export async function examineAuditSeal(db: Queryable): Promise<Finding> {
  const [row] = await db.query<{ sealedAgo: number | null; unsealedFor: number | null }>(sql`
    WITH last AS (SELECT s.last_seq, s.sealed_at FROM audit.seals s ORDER BY s.block DESC LIMIT 1)
    SELECT (SELECT date_part('epoch', clock_timestamp() - sealed_at) FROM last) AS "sealedAgo",
           (SELECT date_part('epoch', clock_timestamp() - e.at) FROM audit.events e
            WHERE e.seq > COALESCE((SELECT last_seq FROM last), 0)
            ORDER BY e.seq LIMIT 1) AS "unsealedFor"`);
  const { sealedAgo = null, unsealedFor = null } = row ?? {};
  const last =
    sealedAgo === null ? 'there is no block yet' : `the last block is ${formatSeconds(sealedAgo)} old`;
  if (unsealedFor === null) return ok('audit_seal', `${last}; every event is sealed`);
  const found = `${last}; the oldest event that is not sealed is ${formatSeconds(unsealedFor)} old`;
  return unsealedFor <= staleSeconds
    ? ok('audit_seal', found)
    : warning(
        'audit_seal',
        found,
        'run a process with the role workers, and see the runbook AuditSealStale: an old transaction delays the seal',
      );
}

const guards: Readonly<Record<string, readonly string[]>> = {
  events: ['events_are_stamped', 'events_are_not_changed', 'events_are_not_truncated'],
  seals: ['seals_are_chained', 'seals_are_not_changed'],
  dropped_months: ['dropped_months_are_not_changed'],
};

/** Whether the role of the server could change the log. That one role owns everything is usual outside of production. */
export async function examineAuditRights(db: Queryable, isProduction: boolean): Promise<Finding> {
  const missing = await missingGuards(db);
  if (missing.length > 0)
    return problem(
      'audit_rights',
      `append-only is not enforced: triggers are missing or disabled: ${missing.join(', ')}`,
      'find out who did it, enable them as the owner (ALTER TABLE … ENABLE TRIGGER …), and run `redrive audit verify`',
    );
  const [row] = await db.query<{ role: string; mayChange: boolean }>(sql`
    SELECT current_user AS role,
           bool_or(pg_has_role(current_user, c.relowner, 'MEMBER')
                   OR has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE')) AS "mayChange"
    FROM pg_class c
    WHERE c.relnamespace = 'audit'::regnamespace AND c.relkind IN ('r', 'p')`);
  if (row?.mayChange !== true)
    return ok('audit_rights', `append-only: ${row?.role} can add to the audit log, and change nothing`);
  const found = `append-only is not enforced: ${row.role} owns the audit log, or may change it`;
  if (!isProduction) return ok('audit_rights', found);
  return warning(
    'audit_rights',
    found,
    'run the server as a role that owns nothing: deploy/postgres/roles.sql',
  );
}

/** Of the table itself and, as its rows are there, of its partitions. */
async function missingGuards(db: Queryable): Promise<readonly string[]> {
  const tables = Object.entries(guards).flatMap(([table, names]) => names.map((name) => ({ table, name })));
  const rows = await db.query<{ missing: string }>(sql`
    SELECT format('%s on %s', g.name, c.relname) AS missing
    FROM unnest(${tables.map(({ table }) => table)}::text[], ${tables.map(({ name }) => name)}::text[]) AS g (tab, name)
    CROSS JOIN LATERAL (SELECT format('audit.%I', g.tab)::regclass AS relid
                        UNION SELECT p.relid FROM pg_partition_tree(format('audit.%I', g.tab)::regclass) AS p) AS part
    JOIN pg_class c ON c.oid = part.relid
    WHERE NOT EXISTS (SELECT 1 FROM pg_trigger t
                      WHERE t.tgrelid = c.oid AND t.tgname = g.name AND t.tgenabled IN ('O', 'A'))
    ORDER BY 1
    LIMIT 10`);
  return rows.map(({ missing }) => missing);
}
