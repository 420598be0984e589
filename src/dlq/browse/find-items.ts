import type { FastifyRequest } from 'fastify';
import { mayAnywhere, namesAllowed } from '../../kernel/access/principal.ts';
import type { NameFilter } from '../../kernel/access/scope.ts';
import { maxFoundItems, readTraceId, type FoundBy, type FoundItem } from '../../kernel/find/found-item.ts';
import { uuidsWithPrefix, type UuidRange } from '../../kernel/uuid-prefix.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { areNamed, isNamed } from '../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Payloads } from '../domain/payloads.ts';
import { epochMs } from '../instant.ts';
import { keyHashes } from '../message-filter.ts';

export type FindDeps = Readonly<{
  db: Queryable;
  masking: PayloadMasks;
  payloads: Pick<Payloads, 'hashes'>;
}>;

type Row = Omit<FoundItem, 'slice' | 'kind' | 'createdAt' | 'by'> & Readonly<{ createdAt: number }>;

/** Newest messages with one key that are looked through for those that the caller may see. */
const maxCandidates = 1000;

/** Messages and redrives by id, messages by their whole key or by the trace in their headers. */
export function createMessageFinder({ db, masking, payloads }: FindDeps) {
  return async (request: FastifyRequest, text: string): Promise<readonly FoundItem[]> => {
    const { principal } = request;
    const range = uuidsWithPrefix(text);
    const trace = readTraceId(text);
    const found: Promise<readonly FoundItem[]>[] = [];
    if (mayAnywhere(principal, 'dlq:messages:view')) {
      const names = namesAllowed(principal, 'dlq:messages:view', 'topics');
      const seesAll = masking.seesPayloads(request);
      const masks = masking.ofAny();
      if (range !== null) found.push(messages('id', byId(db, range, names)));
      if (seesAll || masks.keyText(text) === text)
        found.push(
          messages(
            'key',
            byFacet(db, {
              column: sql`key_hash`,
              values: keyHashes(text, { hashes: await payloads.hashes() }),
              names,
            }),
          ),
        );
      if (trace !== null && (seesAll || isHeaderShown(masking, trace)))
        found.push(messages('trace', byFacet(db, { column: sql`trace_id`, values: [trace], names })));
    }
    if (range !== null && mayAnywhere(principal, 'dlq:redrives:view'))
      found.push(findRedrives(db, masking, range, namesAllowed(principal, 'dlq:redrives:view', 'topics')));
    return (await Promise.all(found)).flat();
  };
}

function isHeaderShown(masking: PayloadMasks, trace: string): boolean {
  const value = Buffer.from(`00-${trace}-0000000000000000-01`);
  return masking.ofAny().header('traceparent', value)?.value?.equals(value) === true;
}

async function messages(by: FoundBy, rows: Promise<readonly Row[]>): Promise<readonly FoundItem[]> {
  return (await rows).map((row) => ({
    ...row,
    slice: 'dlq',
    kind: 'message',
    by,
    createdAt: new Date(row.createdAt),
  }));
}

const columns = (isArchived: boolean): Sql => sql`
  t.id, t.original_topic AS title, t.status::text AS status, ${epochMs(sql`t.created_at`)} AS "createdAt",
  ${isArchived}::boolean AS "isArchived"`;

function byId(db: Queryable, { first, last }: UuidRange, names: NameFilter): Promise<readonly Row[]> {
  const part = (table: Sql, isArchived: boolean): Sql => sql`(
    SELECT ${columns(isArchived)} FROM ${table} t
    WHERE t.id BETWEEN ${first}::uuid AND ${last}::uuid AND ${isNamed(sql`t.original_topic`, names)}
    ORDER BY t.id LIMIT ${maxFoundItems})`;
  return db.query<Row>(sql`
    SELECT * FROM (
      ${part(sql`dlq.dlq_messages`, false)} UNION ALL ${part(sql`dlq.dlq_messages_archive`, true)}
    ) AS found
    LIMIT ${maxFoundItems}`);
}

type ByFacet = Readonly<{ column: Sql; values: readonly (string | Buffer)[]; names: NameFilter }>;

/** The newest ones. What was stored within the last second may not be indexed yet. */
function byFacet(db: Queryable, { column, values, names }: ByFacet): Promise<readonly Row[]> {
  const part = (value: string | Buffer, facets: Sql, table: Sql, isArchived: boolean): Sql => sql`(
    SELECT ${columns(isArchived)}
    FROM (
      SELECT f.message_id, f.created_at FROM ${facets} f WHERE f.${column} = ${value}
      ORDER BY f.created_at DESC, f.message_id DESC LIMIT ${maxCandidates}
    ) AS candidate
    JOIN ${table} t ON t.id = candidate.message_id
    WHERE ${isNamed(sql`t.original_topic`, names)}
    ORDER BY candidate.created_at DESC, candidate.message_id DESC LIMIT ${maxFoundItems})`;
  const parts = values.flatMap((value) => [
    part(value, sql`dlq.message_facets`, sql`dlq.dlq_messages`, false),
    part(value, sql`dlq.message_facets_archive`, sql`dlq.dlq_messages_archive`, true),
  ]);
  const all = parts.reduce((before, one) => sql`${before} UNION ALL ${one}`);
  return db.query<Row>(sql`
    SELECT * FROM (${all}) AS found ORDER BY "isArchived", "createdAt" DESC, id DESC LIMIT ${maxFoundItems}`);
}

async function findRedrives(
  db: Queryable,
  masking: PayloadMasks,
  { first, last }: UuidRange,
  names: NameFilter,
): Promise<readonly FoundItem[]> {
  const rows = await db.query<Row>(sql`
    SELECT t.id, t.reason AS title, t.state AS status, ${epochMs(sql`t.created_at`)} AS "createdAt",
           false AS "isArchived"
    FROM dlq.redrives t
    WHERE t.id BETWEEN ${first}::uuid AND ${last}::uuid AND ${areNamed(sql`t.topics`, names)}
    ORDER BY t.id LIMIT ${maxFoundItems}`);
  return rows.map((row) => ({
    ...row,
    slice: 'dlq',
    kind: 'redrive',
    by: 'id',
    title: masking.ofAny().text(row.title),
    createdAt: new Date(row.createdAt),
  }));
}
