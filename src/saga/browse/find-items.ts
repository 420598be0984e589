import type { FastifyRequest } from 'fastify';
import { mayAnywhere, namesAllowed } from '../../kernel/access/principal.ts';
import { maxFoundItems, readTraceId, type FoundItem } from '../../kernel/find/found-item.ts';
import { uuidsWithPrefix } from '../../kernel/uuid-prefix.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';

type Row = Omit<FoundItem, 'slice' | 'kind'>;

/** Sagas by id, and those that are not archived by their correlation id or trace. */
export function createSagaFinder({ db, masking }: Readonly<{ db: Queryable; masking: PayloadMasks }>) {
  return async (request: FastifyRequest, text: string): Promise<readonly FoundItem[]> => {
    const { principal } = request;
    if (!mayAnywhere(principal, 'saga:sagas:view')) return [];
    const isShown = masking.seesPayloads(request) || masking.ofAny().keyText(text) === text;
    const isVisible = isNamed(sql`t.workflow_name`, namesAllowed(principal, 'saga:sagas:view', 'workflows'));
    const part = (by: Row['by'], where: Sql, isArchived: boolean): Sql => sql`(
      SELECT t.id::text AS id, t.workflow_name AS title, t.status::text AS status, t.created_at AS "createdAt", ${by}::text AS by,
             ${isArchived}::boolean AS "isArchived"
      FROM ${isArchived ? sql`saga.saga_states_archive` : sql`saga.saga_states`} t
      WHERE ${where} AND ${isVisible}
      LIMIT ${maxFoundItems})`;
    const range = uuidsWithPrefix(text);
    const trace = readTraceId(text);
    const hasId = range === null ? null : sql`t.id BETWEEN ${range.first}::uuid AND ${range.last}::uuid`;
    const parts = [
      ...(hasId === null ? [] : [part('id', hasId, false), part('id', hasId, true)]),
      ...(isShown ? [part('key', sql`t.correlation_id = ${text}`, false)] : []),
      ...(trace === null
        ? []
        : [part('trace', sql`t.trace IS NOT NULL AND substr(t.trace, 4, 32) = ${trace}`, false)]),
    ];
    if (parts.length === 0) return [];
    const rows = await db.query<Row>(joinSql(parts, sql` UNION ALL `));
    return rows.map((row) => ({ ...row, slice: 'saga', kind: 'saga' }));
  };
}
