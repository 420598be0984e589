import type { FastifyRequest } from 'fastify';
import { mayAnywhere, namesAllowed } from '../../kernel/access/principal.ts';
import { maxFoundItems, readTraceId, type FoundItem } from '../../kernel/find/found-item.ts';
import { uuidsWithPrefix } from '../../kernel/uuid-prefix.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';

type Row = Omit<FoundItem, 'slice' | 'kind'>;

/** Queues that are asked for a key, one by one. */
const maxQueues = 1000;

/** Jobs by id, by the trace of whoever enqueued them, and those that are not done by their dedupe key. */
export function createJobFinder({ db, masking }: Readonly<{ db: Queryable; masking: PayloadMasks }>) {
  return async (request: FastifyRequest, text: string): Promise<readonly FoundItem[]> => {
    const { principal } = request;
    if (!mayAnywhere(principal, 'jobs:jobs:view')) return [];
    const isShown = masking.seesPayloads(request) || masking.ofAny().keyText(text) === text;
    const isVisible = isNamed(sql`t.queue`, namesAllowed(principal, 'jobs:jobs:view', 'queues'));
    const part = (by: Row['by'], from: Sql, where: Sql): Sql => sql`(
      SELECT t.job_id::text AS id, t.queue AS title, t.status::text AS status, t.created_at AS "createdAt", ${by}::text AS by,
             false AS "isArchived"
      FROM ${from} WHERE ${where} AND ${isVisible}
      LIMIT ${maxFoundItems})`;
    const range = uuidsWithPrefix(text);
    const trace = readTraceId(text);
    const all = sql`jobs.job_queue t`;
    const parts = [
      ...(range === null
        ? []
        : [part('id', all, sql`t.job_id BETWEEN ${range.first}::uuid AND ${range.last}::uuid`)]),
      ...(isShown ? [part('key', withKey(text), sql`true`)] : []),
      ...(trace === null
        ? []
        : [part('trace', all, sql`t.trace IS NOT NULL AND substr(t.trace, 4, 32) = ${trace}`)]),
    ];
    if (parts.length === 0) return [];
    const rows = await db.query<Row>(sql`
      WITH RECURSIVE queues AS (
        SELECT (SELECT min(t.queue) FROM jobs.job_queue t WHERE ${hasOpenKey}) AS queue, 1 AS place
        UNION ALL
        SELECT (SELECT min(t.queue) FROM jobs.job_queue t WHERE ${hasOpenKey} AND t.queue > q.queue), q.place + 1
        FROM queues q WHERE q.queue IS NOT NULL AND q.place < ${maxQueues}
      )
      ${joinSql(parts, sql` UNION ALL `)}`);
    return rows.map((row) => ({ ...row, slice: 'jobs', kind: 'job' }));
  };
}

/** What the index of dedupe keys has. */
const hasOpenKey: Sql = sql`t.dedupe_key IS NOT NULL AND t.status IN ('pending', 'running', 'failed')`;

function withKey(key: string): Sql {
  return sql`queues q CROSS JOIN LATERAL (
    SELECT t.job_id, t.queue, t.status, t.created_at FROM jobs.job_queue t
    WHERE t.queue = q.queue AND t.dedupe_key = ${key} AND ${hasOpenKey}
  ) AS t`;
}
