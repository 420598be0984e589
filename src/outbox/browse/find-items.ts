import type { FastifyRequest } from 'fastify';
import { mayAnywhere, namesAllowed } from '../../kernel/access/principal.ts';
import { maxFoundItems, readTraceId, type FoundItem } from '../../kernel/find/found-item.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';

type Row = Omit<FoundItem, 'slice' | 'kind'>;

/** Orders by number, by their whole idempotency key, or by their trace. */
export function createOrderFinder({ db, masking }: Readonly<{ db: Queryable; masking: PayloadMasks }>) {
  return async (request: FastifyRequest, text: string): Promise<readonly FoundItem[]> => {
    const { principal } = request;
    if (!mayAnywhere(principal, 'outbox:orders:view')) return [];
    const seesAll = masking.seesPayloads(request);
    const isShown = seesAll || masking.ofAny().keyText(text) === text;
    const isVisible = isNamed(
      sql`t.destination`,
      namesAllowed(principal, 'outbox:orders:view', 'destinations'),
    );
    const part = (by: Row['by'], where: Sql, isArchived: boolean): Sql => sql`(
      SELECT t.id::text AS id, t.destination AS title, t.status, t.created_at AS "createdAt", ${by}::text AS by,
             ${isArchived}::boolean AS "isArchived"
      FROM ${isArchived ? sql`outbox.outbox_orders_archive` : sql`outbox.outbox_orders`} t
      WHERE ${where} AND ${isVisible}
      LIMIT ${maxFoundItems})`;
    const both = (by: Row['by'], where: Sql): readonly Sql[] => [
      part(by, where, false),
      part(by, where, true),
    ];
    const id = readNumber(text);
    const trace = readTraceId(text) ?? text;
    const parts = [
      ...(id === null ? [] : both('id', sql`t.id = ${id}::bigint`)),
      ...(isShown ? both('key', sql`t.idempotency_key = ${text}`) : []),
      // Archived orders are kept for the proof of their effect, which is asked for by key.
      ...(isShown
        ? [
            part(
              'trace',
              sql`t.trace_id = ${trace} AND left(t.trace_id, 100) = left(${trace}::text, 100)`,
              false,
            ),
          ]
        : []),
    ];
    if (parts.length === 0) return [];
    const rows = await db.query<Row>(joinSql(parts, sql` UNION ALL `));
    return rows.map((row) => ({ ...row, slice: 'outbox', kind: 'order' }));
  };
}

/** What fits into a BIGINT and is no number with zeros before it. */
function readNumber(text: string): string | null {
  return /^[1-9]\d{0,17}$/.test(text) ? text : null;
}
