import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import type { MessageFilter } from '../message-filter.ts';
import { indexAll } from '../upkeep/index-messages.ts';
import { countFacets } from './count-facets.ts';
import { listMessages } from './list-messages.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(() =>
  database.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.dlq_messages_archive, dlq.index_queue`),
);

type Stored = Readonly<{ error?: string; payload?: string; raw?: Buffer; class?: string }>;

async function store({ error = 'boom', payload, raw, class: errorClass }: Stored): Promise<string> {
  const [row] = await database.db.query<{ id: string }>(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, payload, raw_value, error_class, source_topic)
    VALUES ('a.v1', ${error}, ${payload ?? null}::jsonb, ${raw ?? null}, ${errorClass ?? null},
            ${raw === undefined ? null : 'a.dlq'})
    RETURNING id`);
  return row?.id ?? '';
}

const page = { by: 'keyset', after: null, pageSize: 20 } as const;

async function find(filter: MessageFilter): Promise<readonly string[]> {
  const { messages } = await listMessages(database.db, filter, page);
  return messages.map(({ id }) => id);
}

const found = async (text: string): Promise<number> => (await find({ text })).length;

describe('text', () => {
  test('all words are found, in any order and case, in the class, the error and the value', async () => {
    const id = await store({
      error: 'Timed out after 3000 ms: payment-gateway.internal',
      class: 'java.net.SocketTimeoutException',
      payload: '{"order_id": "A-4711", "Straße": "Ünter den Linden", "n": {"deep": [1, "Wald\\nrand"]}}',
    });
    await indexAll(database.db);
    for (const text of [
      'timed',
      'OUT timed',
      'gateway payment',
      'payment-gateway',
      'sockettimeoutexception',
      'net.SocketTimeoutException',
      'a-4711',
      '4711 3000',
      'ünter LINDEN',
      'straße',
      'deep wald',
      'rand',
      'ｔｉｍｅｄ',
    ])
      assert.deepEqual(await find({ text }), [id], text);
    for (const text of ['time', 'timed in', '471', 'nwald', 'nrand'])
      assert.deepEqual(await find({ text }), [], text);
  });

  test('Chinese, Japanese and Korean are found by parts of any length', async () => {
    const id = await store({
      error: '注文の処理に失敗しました（在庫なし）',
      payload: '{"名前": "田中さん", "주문": "결제실패"}',
    });
    await indexAll(database.db);
    for (const text of [
      '注文',
      '処理',
      '失敗しました',
      '在庫なし',
      '庫',
      '敗',
      '田中',
      '결제',
      '실패',
      '注文 田中',
      '中',
    ])
      assert.deepEqual(await find({ text }), [id], text);
    for (const text of ['注処', '文注', '結', '在庫あり']) assert.deepEqual(await find({ text }), [], text);
  });

  test('values are read as their bytes: escapes, other encodings, cut characters and binary', async () => {
    const escaped = await store({
      raw: Buffer.from('{"a":"\\u6ce8\\u6587"}'),
      payload: '{"a":"\\u6ce8\\u6587"}',
    });
    const binary = await store({ raw: Buffer.from([0, 255, 254, 0x61, 0x76, 0x72, 0x6f, 0, 200]) });
    const xml = await store({ raw: Buffer.from('<order><id>77</id><note>größe</note></order>') });
    const cut = await store({ raw: Buffer.from(`first ${'あ'.repeat(3000)} behind`) });
    await indexAll(database.db);
    assert.deepEqual(await find({ text: '注文' }), [escaped]);
    assert.deepEqual(await find({ text: 'avro' }), [binary]);
    assert.deepEqual(await find({ text: 'note GRÖßE' }), [xml]);
    assert.deepEqual(await find({ text: 'first ああ' }), [cut]);
    assert.equal(await found('behind'), 0);
  });

  test('texts that nothing has, or that are no words, find nothing and do no harm', async () => {
    await store({ error: "it's a 'quoted' \\ back & slash | (paren) <-> :* !" });
    await indexAll(database.db);
    assert.equal(await found("'quoted' & (back"), 1);
    for (const text of ["'", '\\', '& | !', ':*', '<->', '😀', '・', 'x'.repeat(256), "a'b\\c:*"])
      assert.equal(await found(text), 0, text);
    await store({ error: '😀 fire', payload: `"${'w'.repeat(9000)}"` });
    await indexAll(database.db);
    assert.equal(await found('w'.repeat(200)), 1);
  });
});

test('a message is not found by the index before it is indexed, and the answer says so', async () => {
  const first = await store({ class: 'x.First' });
  await indexAll(database.db);
  const second = await store({ class: 'x.First', error: 'second' });
  const { messages, indexedUntil } = await listMessages(database.db, { errorClass: 'x.First' }, page);
  assert.deepEqual(
    messages.map(({ id }) => id),
    [first],
  );
  const [row] = await database.db.query<{ ok: boolean }>(sql`
    SELECT queued_at - ${indexedUntil}::timestamptz BETWEEN '0 ms' AND '1 ms' AS ok FROM dlq.index_queue`);
  assert.equal(row?.ok, true);
  await indexAll(database.db);
  assert.deepEqual(await find({ errorClass: 'x.First' }), [second, first]);
  const { indexedUntil: now } = await listMessages(database.db, { errorClass: 'x.First' }, page);
  assert.ok(now > indexedUntil);
});

test('what is indexed follows the message: when its error changes, is archived, comes back and is deleted', async () => {
  const { db } = database;
  const id = await store({ error: 'before', class: 'x.Before' });
  await indexAll(db);
  await db.query(sql`UPDATE dlq.dlq_messages SET error_message = 'later', error_class = 'x.Later'`);
  assert.deepEqual(await find({ text: 'before' }), []);
  await indexAll(db);
  assert.deepEqual(await find({ text: 'later', errorClass: 'x.Later' }), [id]);
  await db.query(sql`UPDATE dlq.dlq_messages SET status = 'DEAD'`);
  assert.deepEqual(
    await db.query(sql`SELECT 1 FROM dlq.index_queue`),
    [],
    'a new status is nothing to index',
  );
  await db.call(sql`CALL dlq.archive_old_dlq_messages(-1)`);
  assert.deepEqual(await find({ text: 'later' }), []);
  assert.deepEqual(await find({ text: 'later', isArchived: true }), [id]);
  assert.deepEqual(await find({ errorClass: 'x.Later', isArchived: true }), [id]);
  assert.deepEqual(await db.query(sql`SELECT 1 FROM dlq.index_queue`), [], 'it was moved, not indexed again');
  await db.query(sql`DELETE FROM dlq.dlq_messages_archive`);
  assert.deepEqual(
    await db.query(sql`SELECT 1 FROM dlq.message_facets UNION ALL SELECT 1 FROM dlq.message_facets_archive`),
    [],
  );
});

test('a message that is archived before it is indexed is indexed there', async () => {
  await store({ error: 'fast' });
  await database.db.query(sql`UPDATE dlq.dlq_messages SET status = 'DEAD'`);
  await database.db.call(sql`CALL dlq.archive_old_dlq_messages(-1)`);
  await indexAll(database.db);
  assert.equal((await find({ text: 'fast', isArchived: true })).length, 1);
});

test('a message that PostgreSQL refuses to index holds up no other', async () => {
  const { db } = database;
  await store({ error: 'good' });
  const bad = await store({ error: 'bad', class: 'x.Bad' });
  await db.query(sql`
    CREATE FUNCTION dlq.refuse_bad() RETURNS TRIGGER AS $$
    BEGIN
      IF NEW.search @@ 'bad' THEN RAISE program_limit_exceeded; END IF;
      RETURN NEW;
    END $$ LANGUAGE plpgsql`);
  await db.query(sql`
    CREATE TRIGGER refuse_bad BEFORE INSERT ON dlq.message_facets FOR EACH ROW EXECUTE FUNCTION dlq.refuse_bad()`);
  const refused: string[] = [];
  await indexAll(db, (id) => refused.push(id));
  await db.query(sql`DROP FUNCTION dlq.refuse_bad CASCADE`);
  assert.deepEqual(refused, [bad]);
  assert.equal(await found('good'), 1);
  assert.equal(await found('bad'), 0);
  assert.deepEqual(await find({ errorClass: 'x.Bad' }), [bad]);
});

const day = (n: number): Date => new Date(Date.UTC(2026, 0, n));

/** A message per day, whose columns repeat with different periods. */
async function storeMany(count: number): Promise<void> {
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, error_class, consumer_group, fingerprint, message_key, status, created_at,
       source_topic, raw_value, unroutable)
    SELECT 'topic-' || i % 7 || '.v1', CASE WHEN i % 3 = 0 THEN 'timed out' ELSE 'refused' END || ' w' || i,
           CASE WHEN i % 5 > 0 THEN 'x.E' || i % 5 END, CASE WHEN i % 4 > 0 THEN 'group-' || i % 4 END,
           'v2:' || lpad(to_hex(i % 6), 32, '0'),
           CASE WHEN i % 11 > 0 THEN convert_to('key-' || i % 11, 'UTF8') END,
           (ARRAY['PENDING', 'RESOLVED', 'RETRYING', 'DEAD'])[1 + i % 4],
           '2026-01-01Z'::timestamptz + i * interval '1 hour', 'topic-' || i % 7 || '.dlq.v1', 'value'::bytea, i % 50 = 0
    FROM generate_series(1, ${count}::int) AS i`);
  await indexAll(database.db);
}

/** What the filter means, in one statement without any index. */
const meanings: readonly (readonly [MessageFilter, string])[] = [
  [{ topic: 'topic-3.v1' }, `original_topic = 'topic-3.v1'`],
  [{ topic: 'topic-3.*' }, `original_topic = 'topic-3.v1'`],
  [{ topic: 'topic-?.dlq*', status: ['DEAD', 'PENDING'] }, `status IN ('DEAD', 'PENDING')`],
  [{ topic: '*3*' }, `original_topic = 'topic-3.v1'`],
  [{ topic: 'topic-9*' }, `false`],
  [{ topic: 'topic_3.v1' }, `false`],
  [{ status: ['DEAD', 'RETRYING'] }, `status IN ('DEAD', 'RETRYING')`],
  [{ fingerprint: `v2:${'5'.padStart(32, '0')}` }, `fingerprint LIKE '%5'`],
  [{ errorClass: 'x.E2' }, `error_class = 'x.E2'`],
  [{ key: 'key-4' }, `message_key = 'key-4'`],
  [{ consumerGroup: 'group-1' }, `consumer_group = 'group-1'`],
  [{ text: 'timed' }, `error_message LIKE 'timed%'`],
  [{ text: 'w77' }, `error_message LIKE '% w77'`],
  [{ isUnroutable: true }, `unroutable`],
  [{ isUnroutable: false, errorClass: 'x.E1' }, `NOT unroutable AND error_class = 'x.E1'`],
  [{ since: day(10), until: day(20) }, `created_at >= '2026-01-10Z' AND created_at < '2026-01-20Z'`],
  [
    { since: day(10), until: day(20), text: 'refused' },
    `created_at >= '2026-01-10Z' AND created_at < '2026-01-20Z' AND error_message LIKE 'refused%'`,
  ],
  [{ not: { status: ['DEAD'] } }, `status <> 'DEAD'`],
  [{ not: { errorClass: ['x.E1', 'x.E2'] } }, `COALESCE(error_class, '') NOT IN ('x.E1', 'x.E2')`],
  [
    { not: { consumerGroup: ['group-3'], topic: ['topic-1*'] } },
    `COALESCE(consumer_group, '') <> 'group-3' AND original_topic <> 'topic-1.v1'`,
  ],
  [
    { not: { key: ['key-1'] }, errorClass: 'x.E1' },
    `message_key IS DISTINCT FROM 'key-1' AND error_class = 'x.E1'`,
  ],
  [
    { not: { text: ['timed out'] }, topic: 'topic-2.v1' },
    `error_message NOT LIKE 'timed%' AND original_topic = 'topic-2.v1'`,
  ],
  [
    { not: { fingerprint: [`v2:${'0'.repeat(32)}`] }, text: 'timed' },
    `error_message LIKE 'timed%' AND fingerprint NOT LIKE '%000'`,
  ],
  [
    { topic: 'topic-4.v1', errorClass: 'x.E3', consumerGroup: 'group-2', status: ['RETRYING'] },
    `original_topic = 'topic-4.v1' AND error_class = 'x.E3' AND consumer_group = 'group-2' AND status = 'RETRYING'`,
  ],
];

test('every filter finds exactly the messages that it means, newest first, on pages by cursor and by number', async () => {
  await storeMany(1200);
  for (const [filter, meaning] of meanings) {
    const name = JSON.stringify(filter);
    const expected = await database.db.query<{ id: string }>(
      new Sql([`SELECT id FROM dlq.dlq_messages WHERE ${meaning} ORDER BY created_at DESC, id DESC`], []),
    );
    const seen: string[] = [];
    for (let after: Readonly<{ createdAt: string; id: string }> | null = null; ;) {
      const one = await listMessages(database.db, filter, { by: 'keyset', after, pageSize: 90 });
      seen.push(...one.messages.map(({ id }) => id));
      const last = one.messages.at(-1);
      assert.deepEqual(one.count, { total: expected.length, isEstimate: false }, name);
      if (!one.hasNext || last === undefined) break;
      after = { createdAt: last.createdAtExact, id: last.id };
    }
    assert.deepEqual(
      seen,
      expected.map(({ id }) => id),
      name,
    );
    const third = await listMessages(database.db, filter, { by: 'number', offset: 40, pageSize: 20 });
    assert.deepEqual(
      third.messages.map(({ id }) => id),
      seen.slice(40, 60),
      name,
    );
    assert.equal(third.hasNext, seen.length > 60, name);
  }
});

test('a rare status of a common consumer group or class is found in one step', async () => {
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, status, consumer_group, error_class)
    SELECT 'a.v1', 'boom', CASE WHEN n = 1 THEN 'DEAD' ELSE 'RESOLVED' END, 'billing', 'shop.Error'
    FROM generate_series(1, 3000) AS n`);
  await indexAll(database.db);
  let steps = 0;
  const counting: typeof database.db = {
    ...database.db,
    query(statement) {
      if (statement.text.includes('last_created_at')) steps += 1;
      return database.db.query(statement);
    },
  };
  for (const filter of [{ consumerGroup: 'billing' }, { errorClass: 'shop.Error' }]) {
    steps = 0;
    const { messages, count } = await listMessages(counting, { ...filter, status: ['DEAD'] }, page);
    assert.deepEqual([messages.length, count.total, steps], [1, 1, 1]);
    assert.equal((await listMessages(counting, { ...filter, status: ['RESOLVED'] }, page)).count.total, 2999);
  }
});

test('a search whose time is up shows what it has found and goes on from there', async () => {
  await storeMany(2500);
  const slow: MessageFilter = {
    not: { errorClass: ['x.E1', 'x.E2', 'x.E3', 'x.E4'], status: ['PENDING', 'RETRYING', 'RESOLVED'] },
  };
  const all = new Set<string>();
  let pages = 0;
  for (let after: Readonly<{ createdAt: string; id: string }> | null = null; ;) {
    const one = await listMessages(database.db, slow, { by: 'keyset', after, pageSize: 100 }, { scanMs: 0 });
    for (const { id } of one.messages) all.add(id);
    pages += 1;
    if (!one.hasNext) break;
    const last = one.messages.at(-1);
    after = one.scannedUntil ?? (last === undefined ? null : { createdAt: last.createdAtExact, id: last.id });
    assert.notEqual(after, null);
  }
  assert.ok(pages > 2, `${pages} pages`);
  assert.equal(all.size, 125);
});

test('facets count all matches by field, the most frequent first, and say what they estimate', async () => {
  await storeMany(2500);
  const { count, sampled, facets } = await countFacets(database.db, { errorClass: 'x.E2' });
  assert.deepEqual([count, sampled], [{ total: 500, isEstimate: false }, null]);
  assert.deepEqual(
    facets.get('status'),
    ['DEAD', 'PENDING', 'RESOLVED', 'RETRYING'].map((value) => ({ value, count: 125 })),
  );
  assert.deepEqual(facets.get('error_class'), [{ value: 'x.E2', count: 500 }]);
  assert.deepEqual(facets.get('topic')?.[0], { value: 'topic-0.v1', count: 72 });
  assert.equal(facets.get('consumer_group')?.length, 3);
  assert.deepEqual(await countFacets(database.db, { text: 'nothing' }).then((none) => none.count.total), 0);
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, status)
    SELECT 'many.v1', 'x', CASE WHEN i % 4 = 0 THEN 'DEAD' ELSE 'RESOLVED' END FROM generate_series(1, 20000) AS i`);
  const many = await countFacets(database.db, { topic: 'many.v1' });
  assert.deepEqual(many.count, { total: 20_000, isEstimate: true });
  assert.equal(many.sampled, 10_000);
  assert.deepEqual(many.facets.get('topic'), [{ value: 'many.v1', count: 20_000 }]);
});
