import { sleep } from '../../kernel/clock.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { readSha256, type DeadLetter } from '../domain/dead-letter.ts';
import type { LookupHashes } from '../domain/payloads.ts';

/**
 * Recognises messages of watched redrives that came back without our headers: by the topic, partition and offset that
 * the dead letter names, else by the hash of its key and value. A letter without a known topic is compared with all
 * watched messages. Returns the letters with the lineage that was found.
 *
 * A redrive is watched before it sends, so a letter that was fetched before the question cannot be one of its messages.
 */
export async function matchWatched(
  db: Queryable,
  letters: readonly DeadLetter[],
  hashes: () => Promise<LookupHashes | null> = () => Promise.resolve(null),
): Promise<readonly DeadLetter[]> {
  if (letters.every(({ lineage }) => lineage !== null)) return letters;
  const watched = await db.query<{ target: string }>(sql`
    SELECT DISTINCT unnest(r.watched_targets) AS target FROM dlq.redrives r WHERE ${isWatched}`);
  if (watched.length === 0) return letters;
  const targets = new Set(watched.map(({ target }) => target));
  const known = await hashes();
  const asked = letters.flatMap((letter, place) =>
    letter.lineage === null && (letter.unroutable || targets.has(letter.originalTopic))
      ? [askFor(letter, place, known)]
      : [],
  );
  if (asked.length === 0) return letters;
  const found = await findByPlace(db, asked);
  const others = asked.filter(({ place }) => !found.has(place));
  for (const [place, one] of await findByHash(db, others)) found.set(place, one);
  const unknown = asked.filter((one) => !found.has(one.place) && isTold(one));
  if (unknown.length > 0) {
    await untilSettled(db, unknown);
    for (const [place, one] of await findByPlace(db, unknown)) found.set(place, one);
  }
  return letters.map((letter, place) => {
    const lineage = found.get(place);
    return lineage === undefined ? letter : { ...letter, lineage };
  });
}

const isWatched: Sql = sql`(r.watched_targets IS NOT NULL AND r.state IN ('running', 'paused', 'stopped'))`;

type Asked = Readonly<{
  place: number;
  topic: string | null;
  partition: number | null;
  offset: bigint | null;
  sha256: Buffer;
  /** The same hash as an encrypted message has it. */
  protectedSha256: Buffer;
}>;
type Lineage = NonNullable<DeadLetter['lineage']>;
type Found = Readonly<{ place: number; messageId: string; attempt: number }>;

function askFor(letter: DeadLetter, place: number, hashes: LookupHashes | null): Asked {
  const { unroutable, originalTopic, originalPartition, originalOffset } = letter;
  const sha256 = readSha256(letter);
  return {
    place,
    topic: unroutable ? null : originalTopic,
    partition: originalPartition,
    offset: originalOffset,
    sha256,
    protectedSha256: hashes?.ofRecord(sha256) ?? sha256,
  };
}

async function findByPlace(db: Queryable, asked: readonly Asked[]): Promise<Map<number, Lineage>> {
  const told = asked.filter(isTold);
  if (told.length === 0) return new Map();
  const rows = await db.query<Found>(sql`
    SELECT told.place, i.message_id AS "messageId", i.attempt_no AS attempt
    FROM ${unnestRows(sql`told`, told, [
      [sql`place`, sql`int[]`, ({ place }) => place],
      [sql`topic`, sql`text[]`, ({ topic }) => topic],
      [sql`part`, sql`int[]`, ({ partition }) => partition],
      [sql`at`, sql`bigint[]`, ({ offset }) => offset],
    ])}
    JOIN dlq.redrive_items i ON i.target = told.topic AND i.partition = told.part AND i."offset" = told.at
      AND i.stage IS NOT NULL AND i."offset" IS NOT NULL
    JOIN dlq.redrives r ON r.id = i.redrive_id AND ${isWatched}`);
  return new Map(rows.map((row) => [row.place, lineageOf(row, 'place')]));
}

function isTold({ topic, partition, offset }: Asked): boolean {
  return topic !== null && partition !== null && offset !== null;
}

/** About as long as a settle takes. */
const settleEveryMs = 20;
/** A batch is published and settled in this time; what is settled later is not recognised by its place. */
const settleWithinMs = 5000;

/**
 * A message can come back before the place where it was published is stored: waits for the messages that are in flight
 * to these targets now.
 */
async function untilSettled(db: Queryable, asked: readonly Asked[]): Promise<void> {
  const targets = [...new Set(asked.map(({ topic }) => topic))];
  const inFlight = await db.query<{ id: string; epoch: bigint }>(sql`
    SELECT DISTINCT i.redrive_id AS id, i.claim_epoch AS epoch FROM dlq.redrive_items i
    JOIN dlq.redrives r ON r.id = i.redrive_id AND ${isWatched}
    WHERE ${isInFlight} AND i.target = ANY(${targets}::text[])`);
  if (inFlight.length === 0) return;
  const until = AbortSignal.timeout(settleWithinMs);
  while (!until.aborted) {
    const [left] = await db.query<{ found: boolean }>(sql`
      SELECT EXISTS (SELECT 1 FROM dlq.redrive_items i WHERE ${isInFlight}
        AND i.redrive_id = ANY(${inFlight.map(({ id }) => id)}::uuid[])
        AND i.claim_epoch = ANY(${inFlight.map(({ epoch }) => epoch)}::bigint[])) AS found`);
    if (left?.found !== true) return;
    await sleep(settleEveryMs, until);
  }
}

const isInFlight: Sql = sql`(i.stage IS NOT NULL AND i.outcome IS NULL AND i.claim_epoch IS NOT NULL)`;

/** Of equal messages each letter gets another one, beginning with those that have not come back. */
async function findByHash(db: Queryable, asked: readonly Asked[]): Promise<Map<number, Lineage>> {
  if (asked.length === 0) return new Map();
  const rows = await db.query<Found>(sql`
    SELECT asked.place, found.message_id AS "messageId", found.attempt_no AS attempt
    FROM (
      SELECT *, row_number() OVER (PARTITION BY a.sha256, a.topic ORDER BY a.place) AS turn
      FROM ${unnestRows(sql`a`, asked, [
        [sql`place`, sql`int[]`, ({ place }) => place],
        [sql`topic`, sql`text[]`, ({ topic }) => topic],
        [sql`sha256`, sql`text[]`, ({ sha256 }) => sha256.toString('hex')],
        [sql`protected`, sql`text[]`, (one) => one.protectedSha256.toString('hex')],
      ])}
    ) AS asked
    CROSS JOIN LATERAL (
      SELECT i.message_id, i.attempt_no FROM dlq.redrive_items i
      JOIN dlq.redrives r ON r.id = i.redrive_id AND ${isWatched}
      WHERE i.sha256 IN (decode(asked.sha256, 'hex'), decode(asked.protected, 'hex')) AND i.sha256 IS NOT NULL AND i.claim_epoch IS NOT NULL
        AND (asked.topic IS NULL OR i.target = asked.topic)
      ORDER BY i.came_back_at IS NOT NULL, i.redrive_id, i.position
      OFFSET asked.turn - 1 LIMIT 1
    ) AS found`);
  return new Map(rows.map((row) => [row.place, lineageOf(row, 'content')]));
}

function lineageOf({ messageId, attempt }: Found, matched: 'place' | 'content'): Lineage {
  return { messageId, attempt, version: null, headerTopic: null, matched };
}
