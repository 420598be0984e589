import type { Queryable } from './database.ts';
import { sql } from './sql.ts';

/** Something that the server needs and its role may not do. */
export type MissingRight = Readonly<{
  /** `outbox.outbox_audit`, `function dlq.compact_topic_counts()`. */
  object: string;
  rights: readonly string[];
  /** What the owner runs to give it. */
  grant: string;
}>;

/**
 * What the current role lacks of what a server uses, read from the catalogue: every schema, table, view, sequence and
 * routine of ours. Tables are read and written, but for those that `deploy/postgres/server.sql` excepts. The sequence of
 * an identity column and the partitions of a table need no rights of their own.
 */
export async function missingRights(
  db: Queryable,
  schemas: readonly string[],
): Promise<readonly MissingRight[]> {
  return db.query<MissingRight>(sql`
    WITH needed (kind, object, place, rights, granted) AS (
      SELECT 'SCHEMA ', format('%I', n.nspname), 0, ARRAY['USAGE'],
             ARRAY[has_schema_privilege(n.oid, 'USAGE')]
      FROM pg_namespace n WHERE n.nspname = ANY (${schemas}::text[])
      UNION ALL
      SELECT '', format('%I.%I', n.nspname, c.relname), 1, r.rights,
             ARRAY(SELECT has_table_privilege(c.oid, one) FROM unnest(r.rights) WITH ORDINALITY AS a (one, n) ORDER BY a.n)
      FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
      CROSS JOIN LATERAL (SELECT CASE
        WHEN c.relkind = 'v' OR (n.nspname, c.relname) = ('platform', 'migrations') THEN ARRAY['SELECT']
        WHEN (n.nspname, c.relname) = ('platform', 'dlq_positions') THEN ARRAY[]::text[]
        WHEN (n.nspname, c.relname) IN (('outbox', 'outbox_audit'), ('audit', 'events'), ('audit', 'seals'))
          THEN ARRAY['SELECT', 'INSERT']
        WHEN (n.nspname, c.relname) = ('audit', 'dropped_months') THEN ARRAY['SELECT']
        WHEN (n.nspname, c.relname) = ('platform', 'data_keys') THEN ARRAY['SELECT', 'INSERT', 'UPDATE']
        ELSE ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']
      END) AS r (rights)
      WHERE n.nspname = ANY (${schemas}::text[]) AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
      UNION ALL
      SELECT 'SEQUENCE ', format('%I.%I', n.nspname, c.relname), 2, ARRAY[r.needed],
             ARRAY[has_sequence_privilege(c.oid, r.needed)]
      FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
      -- A trigger of the owner numbers audit events; the server only reads how far.
      CROSS JOIN LATERAL (SELECT CASE n.nspname WHEN 'audit' THEN 'SELECT' ELSE 'USAGE' END) AS r (needed)
      WHERE n.nspname = ANY (${schemas}::text[]) AND c.relkind = 'S'
        AND NOT EXISTS (
          SELECT 1 FROM pg_depend d
          WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i')
      UNION ALL
      SELECT CASE p.prokind WHEN 'p' THEN 'PROCEDURE ' ELSE 'FUNCTION ' END, p.oid::regprocedure::text, 3,
             ARRAY['EXECUTE'], ARRAY[has_function_privilege(p.oid, 'EXECUTE')]
      FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
      WHERE n.nspname = ANY (${schemas}::text[])
    ), missing AS (
      SELECT kind, object, place,
             ARRAY(SELECT one FROM unnest(rights, granted) AS u (one, is_granted) WHERE NOT is_granted) AS rights
      FROM needed
    )
    SELECT lower(kind) || object AS object, rights,
           format('GRANT %s ON %s%s TO %I', array_to_string(rights, ', '), kind, object, current_user) AS "grant"
    FROM missing
    WHERE cardinality(rights) > 0
    ORDER BY place, object`);
}
