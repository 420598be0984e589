import { sql, type Sql } from '../src/platform/postgres/sql.ts';
import type { Queryable } from '../src/platform/postgres/database.ts';

/**
 * The database schema as text, in a stable order: what the migrations really made, to be read in a review and
 * compared in a test. Not meant to be executed.
 */
export async function dumpSchema(db: Queryable): Promise<string> {
  const parts = await Promise.all(sections.map((section) => linesOf(db, section)));
  return `${parts.flat().join('\n')}\n`;
}

const schemas = ['platform', 'dlq', 'outbox', 'jobs', 'saga', 'access', 'audit', 'console'];
const ours = sql`n.nspname = ANY (${schemas}::text[])`;

async function linesOf(db: Queryable, query: Sql): Promise<readonly string[]> {
  return (await db.query<{ line: string }>(query)).map(({ line }) => line);
}

const sections: readonly Sql[] = [
  sql`
    SELECT 'DOMAIN ' || n.nspname || '.' || t.typname || ' ' || format_type(t.typbasetype, t.typtypmod) || ' ' ||
           pg_get_constraintdef(k.oid) AS line
    FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace
    JOIN pg_constraint k ON k.contypid = t.oid
    WHERE ${ours}
    ORDER BY n.nspname, t.typname, k.conname`,
  sql`
    SELECT 'TABLE ' || n.nspname || '.' || c.relname ||
           COALESCE(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') || E'\n' ||
           string_agg('    ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) ||
             CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END ||
             CASE WHEN a.attidentity <> '' THEN ' GENERATED ALWAYS AS IDENTITY'
                  ELSE COALESCE(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') END,
             E'\n' ORDER BY a.attnum) AS line
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE ${ours} AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    GROUP BY n.nspname, c.relname, c.reloptions
    ORDER BY n.nspname, c.relname`,
  sql`
    SELECT 'CONSTRAINT ' || n.nspname || '.' || c.relname || ' ' || k.conname || ' ' || pg_get_constraintdef(k.oid)
             AS line
    FROM pg_constraint k
    JOIN pg_class c ON c.oid = k.conrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE ${ours} AND k.contype <> 'n' AND NOT c.relispartition
    ORDER BY n.nspname, c.relname, k.conname`,
  sql`
    SELECT pg_get_indexdef(c.oid) AS line
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_class t ON t.oid = i.indrelid
    JOIN pg_namespace n ON n.oid = t.relnamespace
    WHERE ${ours} AND NOT c.relispartition
    ORDER BY n.nspname, t.relname, c.relname`,
  sql`
    SELECT 'SEQUENCE ' || schemaname || '.' || sequencename || ' CACHE ' || cache_size AS line FROM pg_sequences
    WHERE schemaname = ANY (${schemas}::text[]) AND sequencename NOT LIKE '%_id_seq'
    ORDER BY schemaname, sequencename`,
  sql`
    SELECT pg_get_triggerdef(t.oid) AS line
    FROM pg_trigger t
    JOIN pg_class c ON c.oid = t.tgrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE ${ours} AND NOT t.tgisinternal AND NOT c.relispartition
    ORDER BY t.tgname, n.nspname, c.relname`,
  sql`
    SELECT rtrim(pg_get_functiondef(p.oid)) AS line
    FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE ${ours}
    ORDER BY p.proname, n.nspname`,
];
