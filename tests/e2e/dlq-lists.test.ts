import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { archiveEverything, storeMessage, type ListView } from '../support/stored-message.ts';

const root = '/api/v1/dlq';
const topic = 'orders.events.v1';

let system: TestSystem;
before(async () => {
  system = await startTestSystem();
});
after(() => system.drop());
beforeEach(() => system.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.dlq_messages_archive`));

const list = async (path: string): Promise<ListView> => {
  const { status, body, text } = await system.api.get<ListView>(`${root}${path}`);
  assert.equal(status, 200, text);
  return body;
};
const idsOf = (page: ListView): readonly string[] => page.messages.map(({ id }) => id);

/** Ids of 25 messages, newest first; five of them share an instant, so that their ids decide. */
async function store25(): Promise<readonly string[]> {
  const stored: { id: string; createdAt: string }[] = [];
  for (let i = 0; i < 25; i += 1) {
    const second = String(i < 5 ? 0 : i).padStart(2, '0');
    const createdAt = `2026-02-20T10:30:${second}.000Z`;
    stored.push({ id: await storeMessage(system.db, { topic, createdAt }), createdAt });
  }
  return stored
    .sort((a, b) => (`${a.createdAt}${a.id}` < `${b.createdAt}${b.id}` ? 1 : -1))
    .map(({ id }) => id);
}

describe('pages by number', () => {
  test('they are newest first, equal instants by id, and tell the total and whether more follows', async () => {
    const expected = await store25();
    const pages = [
      await list(`/${topic}?page_size=10`),
      await list(`/${topic}?page=2&page_size=10`),
      await list(`/${topic}?page=3&page_size=10`),
      await list(`/${topic}?page=4&page_size=10`),
    ];
    assert.deepEqual(pages.flatMap(idsOf), expected);
    assert.deepEqual(
      pages.map(({ pagination }) => pagination),
      [
        { total_count: 25, page: 1, page_size: 10, has_next: true },
        { total_count: 25, page: 2, page_size: 10, has_next: true },
        { total_count: 25, page: 3, page_size: 10, has_next: false },
        { total_count: 25, page: 4, page_size: 10, has_next: false },
      ],
    );
  });

  test('the default is the first twenty', async () => {
    await store25();
    const page = await list(`/${topic}`);
    assert.equal(page.messages.length, 20);
    assert.deepEqual(page.pagination, { total_count: 25, page: 1, page_size: 20, has_next: true });
  });

  test('a page that ends exactly with the list has no next one', async () => {
    await store25();
    assert.equal((await list(`/${topic}?page_size=25`)).pagination.has_next, false);
    assert.equal((await list(`/${topic}?page=5&page_size=5`)).pagination.has_next, false);
  });

  test('sizes from 1 to 100 and pages to a million are taken', async () => {
    await store25();
    assert.equal((await list(`/${topic}?page_size=1`)).messages.length, 1);
    assert.equal((await list(`/${topic}?page_size=100`)).messages.length, 25);
    const far = await list(`/${topic}?page=1000000&page_size=100`);
    assert.deepEqual(far.messages, []);
    assert.deepEqual(far.pagination, { total_count: 25, page: 1_000_000, page_size: 100, has_next: false });
  });

  for (const query of [
    'page=0',
    'page=-1',
    'page=1000001',
    'page=1.5',
    'page=abc',
    'page=',
    'page=1e3',
    'page=0x10',
    'page=99999999999999999999',
    'page=1&page=2',
    'page_size=0',
    'page_size=101',
    'page_size=-5',
    'page_size=ten',
    'pagesize=5',
    'cursor=nonsense',
    'cursor=%00',
    `cursor=${'a'.repeat(1025)}`,
  ])
    test(`?${query.slice(0, 40)} is refused with the field's name`, async () => {
      const error = assertError(
        await system.api.get(`${root}/${topic}?${query}`),
        400,
        'SYS_DLQ_VALIDATION_ERROR',
      );
      assert.equal(error.details[0]?.field, query.split('=')[0]);
    });
});

describe('the list of all topics', () => {
  test('it filters by topic and status, alone and together', async () => {
    const a = await storeMessage(system.db, { topic: 'a.v1' });
    const dead = await storeMessage(system.db, { topic: 'a.v1', status: 'DEAD' });
    const b = await storeMessage(system.db, { topic: 'b.v1' });
    assert.deepEqual(idsOf(await list('/messages')), [b, dead, a]);
    assert.deepEqual(idsOf(await list('/messages?topic=a.v1')), [dead, a]);
    assert.deepEqual(idsOf(await list('/messages?status=PENDING')), [b, a]);
    assert.deepEqual(idsOf(await list('/messages?topic=a.v1&status=DEAD')), [dead]);
    assert.equal((await list('/messages?topic=a.v1&status=DEAD')).pagination.total_count, 1);
    assert.deepEqual(idsOf(await list('/messages?topic=nowhere')), []);
  });

  test('a topic named like one of our own words is reached through it', async () => {
    for (const name of ['messages', 'sources', 'accounting']) {
      const id = await storeMessage(system.db, { topic: name });
      assert.deepEqual(idsOf(await list(`/messages?topic=${name}`)), [id]);
    }
  });

  test('an unknown status is refused', async () => {
    for (const status of ['pending', 'GONE', ''])
      assertError(await system.api.get(`${root}/messages?status=${status}`), 400, 'SYS_DLQ_VALIDATION_ERROR');
  });

  test('archived messages are in no list', async () => {
    await storeMessage(system.db, { topic, status: 'RESOLVED' });
    await archiveEverything(system.db);
    assert.equal((await list(`/${topic}`)).pagination.total_count, 0);
    assert.equal((await list('/messages')).pagination.total_count, 0);
  });
});

describe('a list by cursor', () => {
  async function walk(path: string, betweenPages: () => Promise<void>): Promise<readonly string[]> {
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: ListView = await list(`${path}&cursor=${encodeURIComponent(cursor)}`);
      seen.push(...idsOf(page));
      const next: string | null | undefined = page.pagination.next_cursor;
      assert.notEqual(next, undefined);
      assert.equal(page.pagination.has_next, next !== null);
      cursor = next ?? null;
      await betweenPages();
    }
    return seen;
  }

  test('it shows every message once while others are inserted and deleted', async () => {
    const expected = await store25();
    const later: string[] = [];
    const seen = await walk(`/${topic}?page_size=4`, async () => {
      const id = await storeMessage(system.db, { topic });
      later.push(id);
      const earlier = later.at(-3);
      if (earlier !== undefined)
        await system.db.query(sql`DELETE FROM dlq.dlq_messages WHERE id = ${earlier}`);
    });
    assert.deepEqual(seen, expected);
  });

  test('instants that differ by a microsecond are neither skipped nor repeated', async () => {
    const expected: string[] = [];
    for (let i = 0; i < 12; i += 1) {
      const createdAt = `2026-02-20T10:30:00.1234${String(i).padStart(2, '0')}Z`;
      expected.unshift(await storeMessage(system.db, { topic, createdAt }));
    }
    assert.deepEqual(await walk('/messages?page_size=1', async () => {}), expected);
  });

  test('filters hold on every page', async () => {
    await store25();
    const dead: string[] = [];
    for (let i = 0; i < 7; i += 1) dead.unshift(await storeMessage(system.db, { topic, status: 'DEAD' }));
    assert.deepEqual(await walk('/messages?status=DEAD&page_size=3', async () => {}), dead);
  });

  test('next_cursor is shown only where a cursor was sent', async () => {
    await store25();
    assert.ok(!('next_cursor' in (await list(`/${topic}?page_size=5`)).pagination));
    const { pagination } = await list(`/${topic}?page_size=5&cursor=`);
    assert.deepEqual(Object.keys(pagination), [
      'total_count',
      'page',
      'page_size',
      'has_next',
      'next_cursor',
    ]);
  });
});

describe('topics', () => {
  test('they are counted by status, with the oldest PENDING message', async () => {
    await storeMessage(system.db, { topic: 'a.v1', createdAt: '2026-02-20T10:30:00Z' });
    await storeMessage(system.db, { topic: 'a.v1', createdAt: '2026-02-20T10:31:00Z' });
    await storeMessage(system.db, { topic: 'a.v1', status: 'DEAD', createdAt: '2026-02-20T10:29:00Z' });
    await storeMessage(system.db, { topic: 'b.v1', status: 'RESOLVED' });
    const { body } = await system.api.get<{ topics: unknown }>(root);
    assert.deepEqual(body.topics, [
      {
        topic: 'a.v1',
        total: 3,
        counts: { PENDING: 2, RETRYING: 0, RESOLVED: 0, DEAD: 1 },
        oldest_pending_at: '2026-02-20T10:30:00.000+00:00',
        arrived_per_minute: 0.6,
        unroutable: 0,
        sources: [],
        policies: [],
      },
      {
        topic: 'b.v1',
        total: 1,
        counts: { PENDING: 0, RETRYING: 0, RESOLVED: 1, DEAD: 0 },
        oldest_pending_at: null,
        arrived_per_minute: 0.2,
        unroutable: 0,
        sources: [],
        policies: [],
      },
    ]);
  });

  test('the counts follow retries, deletions and the archive', async () => {
    const ids = [];
    for (let i = 0; i < 3; i += 1) ids.push(await storeMessage(system.db, { topic }));
    await system.api.post(`${root}/messages/${ids[0]}/retry`);
    await system.api.delete(`${root}/messages/${ids[1]}`);
    const counts = async (): Promise<unknown> =>
      (await system.api.get<{ topics: readonly { counts: unknown }[] }>(root)).body.topics.map(
        (one) => one.counts,
      );
    assert.deepEqual(await counts(), [{ PENDING: 1, RETRYING: 0, RESOLVED: 1, DEAD: 0 }]);
    await archiveEverything(system.db);
    assert.deepEqual(await counts(), [{ PENDING: 1, RETRYING: 0, RESOLVED: 0, DEAD: 0 }]);
  });
});

test('a payload too large for a list is left out of it, however well it compresses', async () => {
  const id = await storeMessage(system.db, { topic, payload: { blob: 'a'.repeat(900_000) } });
  const { text } = await system.api.get(`${root}/${topic}`);
  assert.ok(text.length < 10_000, `the page has ${text.length} characters`);
  const page = JSON.parse(text) as ListView;
  assert.equal(page.messages[0]?.payload, null);
  assert.equal(page.messages[0]?.payload_omitted, true);
  const { body } = await system.api.get<{ payload: { blob: string } }>(`${root}/messages/${id}`);
  assert.equal(body.payload.blob.length, 900_000);
});

test('a total beyond ten thousand says that it is an estimate, and deep pages are still exact', async () => {
  await system.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, created_at)
    SELECT 'many.v1', 'no', '2026-02-20T00:00:00Z'::timestamptz + i * interval '1 second'
    FROM generate_series(1, 10050) AS i`);
  const first = await list('/many.v1?page_size=100');
  assert.deepEqual(first.pagination, {
    total_count: 10_050,
    page: 1,
    page_size: 100,
    has_next: true,
    total_is_estimate: true,
  });
  const last = await list('/many.v1?page=101&page_size=100');
  assert.deepEqual([last.messages.length, last.pagination.has_next], [50, false]);
  assert.equal(last.messages.at(-1)?.created_at, '2026-02-20T00:00:01.000+00:00');
  assert.deepEqual((await list('/many.v1?page=102&page_size=100')).messages, []);
});

test('messages of infinite and far times are listed, shown and paged through', async () => {
  const times = ['-infinity', '0001-01-01T00:00:00Z', '2026-02-20T10:30:00Z', '12026-01-01', 'infinity'];
  const ids: string[] = [];
  for (const createdAt of times) ids.unshift(await storeMessage(system.db, { topic, createdAt }));
  const listed = await list(`/messages?topic=${topic}`);
  assert.deepEqual(idsOf(listed), ids);
  assert.deepEqual(
    listed.messages.map(({ created_at }) => created_at),
    [
      '9999-12-31T23:59:59.999+00:00',
      '9999-12-31T23:59:59.999+00:00',
      '2026-02-20T10:30:00.000+00:00',
      '0001-01-01T00:00:00.000+00:00',
      '0001-01-01T00:00:00.000+00:00',
    ],
  );
  const walked: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: ListView = await list(`/messages?topic=${topic}&page_size=1&cursor=${cursor}`);
    walked.push(...idsOf(page));
    cursor = page.pagination.next_cursor ?? null;
  }
  assert.deepEqual(walked, ids);
  for (const id of ids) assert.equal((await system.api.get(`${root}/messages/${id}`)).status, 200);
  assert.equal((await system.api.get(root)).status, 200);
});
