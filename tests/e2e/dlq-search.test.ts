import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { runRedrive } from '../support/redrive-process.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { archiveEverything, storeMessage, type MessageView } from '../support/stored-message.ts';

/** The search over HTTP and on the command line: what the tests of its SQL cannot see. */

const root = '/api/v1/dlq';

type Page = Readonly<{
  messages: readonly (MessageView &
    Readonly<{ payload_preview: string | null; payload_bytes: number | null }>)[];
  pagination: Readonly<{ total_count: number; has_next: boolean; next_cursor?: string | null }>;
  as_of: string;
  indexed_until?: string;
  scanned_until?: string;
}>;
type Facets = Readonly<{
  total_count: number;
  facets: Readonly<Record<string, readonly Readonly<{ value: string; count: number }>[]>>;
  indexed_until?: string;
}>;

let system: TestSystem;
before(async () => {
  system = await startTestSystem({ kafka: 'local' });
  await storeMessage(system.db, {
    topic: 'orders.v1',
    error: 'timed out after 3000 ms',
    payload: { note: '在庫なし', n: 1 },
  });
  await storeMessage(system.db, {
    topic: 'orders.v2',
    error: 'refused',
    status: 'DEAD',
    payload: { text: 'x'.repeat(1000) },
  });
  await storeMessage(system.db, { topic: 'payments.v1', error: 'timed out', status: 'RESOLVED' });
  await system.db.query(sql`
    UPDATE dlq.dlq_messages SET error_class = 'x.Timeout', consumer_group = 'billing', message_key = 'key-1'
    WHERE original_topic = 'payments.v1'`);
  await system.db.query(sql`UPDATE dlq.dlq_messages SET version = 1 WHERE original_topic = 'orders.v1'`);
  await untilIndexed(system);
});
after(() => system.drop());

function untilIndexed({ db }: TestSystem): Promise<void> {
  return eventually(async () => assert.deepEqual(await db.query(sql`SELECT 1 FROM dlq.index_queue`), []));
}

async function search(query: string): Promise<Page> {
  const { status, body, text } = await system.api.get<Page>(`${root}/messages?${query}`);
  assert.equal(status, 200, text);
  return body;
}

const topics = ({ messages }: Page): readonly string[] => messages.map((one) => one.original_topic);
const encoded = (text: string): string => encodeURIComponent(text);

test('filters are query parameters; those with several values are repeated', async () => {
  for (const [query, expected] of [
    ['topic=orders.*', ['orders.v2', 'orders.v1']],
    ['status=DEAD&status=PENDING', ['orders.v2', 'orders.v1']],
    ['not_status=DEAD&not_status=RESOLVED', ['orders.v1']],
    ['not_topic=orders.*', ['payments.v1']],
    ['error_class=x.Timeout', ['payments.v1']],
    ['not_error_class=x.Timeout', ['orders.v2', 'orders.v1']],
    ['key=key-1&consumer_group=billing', ['payments.v1']],
    [`text=${encoded('OUT timed')}`, ['payments.v1', 'orders.v1']],
    [`text=${encoded('在庫')}&topic=orders.v?`, ['orders.v1']],
    [`not_text=timed&unroutable=false`, ['orders.v2']],
    ['unroutable=true', []],
    ['has_edit=true', ['orders.v1']],
    ['has_edit=false&unroutable=false', ['payments.v1', 'orders.v2']],
    ['archived=true', []],
    ['since=2100-01-01T00:00:00Z', []],
    ['until=2100-01-01T00:00:00Z', ['payments.v1', 'orders.v2', 'orders.v1']],
  ] as const)
    assert.deepEqual(topics(await search(query)), expected, query);
});

test('a list has the beginning of the value and its size in place of the payload', async () => {
  const { messages } = await search('topic=orders.*');
  assert.ok(messages.every((one) => !Object.hasOwn(one, 'payload')));
  const [long, short] = messages;
  assert.deepEqual([short?.payload_preview, short?.payload_bytes], ['{"n": 1, "note": "在庫なし"}', 32]);
  assert.equal(long?.payload_bytes, 1012);
  assert.equal(long?.payload_preview, `{"text": "${'x'.repeat(190)}…`);
});

test('a list has only the fields that are asked for, and says how new it is', async () => {
  const began = Date.now();
  const page = await search('topic=orders.v1&fields=status&fields=payload_bytes');
  const [message] = page.messages;
  assert.deepEqual(Object.keys(message ?? {}), ['id', 'status', 'payload_bytes']);
  assert.ok(Math.abs(Date.parse(page.as_of) - began) < 10_000);
  const facets = await system.api.get<Readonly<{ as_of: string }>>(`${root}/messages/facets`);
  const topics = await system.api.get<Readonly<{ as_of: string }>>(root);
  for (const { body } of [facets, topics]) assert.ok(Date.parse(body.as_of) >= Date.parse(page.as_of));
});

test('only a search that reads the index says until when it is complete', async () => {
  const began = Date.now();
  const { indexed_until } = await search('text=timed');
  assert.ok(Date.parse(indexed_until ?? '') >= began - 1000);
  assert.ok(!('indexed_until' in (await search('topic=orders.v1'))));
  assert.ok(!('scanned_until' in (await search('not_text=timed'))));
});

test('facets count what the same filters find', async () => {
  const { body } = await system.api.get<Facets>(`${root}/messages/facets?text=timed`);
  assert.equal(body.total_count, 2);
  assert.deepEqual(body.facets['status'], [
    { value: 'PENDING', count: 1 },
    { value: 'RESOLVED', count: 1 },
  ]);
  assert.deepEqual(body.facets['error_class'], [{ value: 'x.Timeout', count: 1 }]);
  assert.ok(body.indexed_until);
  assertError(await system.api.get(`${root}/messages/facets?page=1`), 400, 'SYS_DLQ_VALIDATION_ERROR');
});

describe('what is no search', () => {
  for (const [query, field] of [
    ['text=', 'text'],
    [`text=${encoded('& | ! :* 。、')}`, 'text'],
    [`text=${encoded('😀')}`, 'text'],
    [`not_text=${encoded('--')}`, 'not_text'],
    [`text=${'a'.repeat(257)}`, 'text'],
    [`text=${encoded('wort '.repeat(10_000)).slice(0, 12_000)}`, 'text'],
    ['text=a&text=b', 'text'],
    ['text=%00', 'text'],
    ['since=yesterday', 'since'],
    ['until=2026-02-20T10:30:00', 'until'],
    ['unroutable=1', 'unroutable'],
    ['archived=yes', 'archived'],
    ['status=DEAD&status=GONE', 'status.1'],
    [Array.from({ length: 11 }, (_, i) => `not_topic=t${i}`).join('&'), 'not_topic'],
    ['has_edit=1', 'has_edit'],
    ['fields=status&fields=payload', 'fields.1'],
    ['nottopic=x', 'nottopic'],
  ] as const)
    test(`?${query.slice(0, 30)} is refused with the field's name`, async () => {
      const error = assertError(
        await system.api.get(`${root}/messages?${query}`),
        400,
        'SYS_DLQ_VALIDATION_ERROR',
      );
      assert.equal(error.details[0]?.field, field);
    });

  test('a lone surrogate is refused, and words of any kind are searched', async () => {
    assertError(await system.api.get(`${root}/messages?text=%ED%A0%80`), 400);
    for (const text of [
      "a' OR 1=1 --",
      "'quoted' \\ back",
      'a:* & !b',
      'a%_%b',
      'w'.repeat(256),
      'あ'.repeat(256),
      'word '.repeat(51).trim(),
      '👩‍👩‍👧 a',
      'e\u0301',
      'ﷺ'.repeat(250),
      '\u{2F800}'.repeat(120),
      '١٢٣',
      'กขค',
    ])
      assert.deepEqual(topics(await search(`text=${encoded(text)}`)), [], text);
  });
});

test('hostile texts in messages are indexed or left out, and their neighbours are found', async () => {
  await system.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, error_class, raw_value, source_topic, payload, message_key)
    VALUES ('odd.v1', repeat('long ', 200000), repeat('c', 5000), decode(repeat('00ff', 100000), 'hex'), 'odd.dlq', NULL, NULL),
           ('odd.v1', repeat('x', 100000), NULL, convert_to('"' || repeat('あ', 50000) || '"', 'UTF8'), 'odd.dlq',
            to_jsonb(repeat('あ', 50000)), decode(repeat('ff', 9000), 'hex')),
           ('odd.v1', '', '', NULL, NULL, ('[' || repeat('1e400,', 5000) || '1]')::jsonb, ''),
           ('odd.v1', E'\\\\u0000 \\\\', NULL, convert_to('{"a":"\\\\u6ce8\\\\n"}', 'UTF8'), 'odd.dlq', '{"a":"注\\n"}', NULL),
           ('odd.v1', 'neighbour', NULL, NULL, NULL, NULL, NULL)`);
  await untilIndexed(system);
  assert.deepEqual(topics(await search('text=neighbour')), ['odd.v1']);
  assert.equal((await search('text=long')).messages.length, 1);
  assert.equal((await search(`text=${encoded('ああ')}&topic=odd.v1`)).messages.length, 1);
  assert.equal((await search('topic=odd.v1')).messages.length, 5);
  assert.equal((await system.api.get(`${root}/messages/facets?topic=odd.v1`)).status, 200);
});

test('archived messages are searched with archived=true', async (t) => {
  const other = await startTestSystem();
  t.after(() => other.drop());
  await storeMessage(other.db, { topic: 'old.v1', error: 'ancient failure', status: 'DEAD' });
  await untilIndexed(other);
  await archiveEverything(other.db);
  const found = async (query: string): Promise<readonly MessageView[]> =>
    (await other.api.get<Page>(`${root}/messages?${query}`)).body.messages;
  assert.deepEqual(await found('text=ancient'), []);
  const archived = await found('text=ancient&archived=true&topic=old.*&status=DEAD');
  assert.deepEqual(
    archived.map((one) => one.archived),
    [true],
  );
});

test('without a process that indexes, answers, metrics and readiness say what is missing', async (t) => {
  const idle = await startTestSystem({ env: { ROLES: 'api' } });
  t.after(() => idle.drop());
  await storeMessage(idle.db, { topic: 'new.v1', error: 'unseen' });
  await idle.db.query(sql`UPDATE dlq.index_queue SET queued_at = queued_at - interval '10 minutes'`);
  const page = (await idle.api.get<Page>(`${root}/messages?text=unseen`)).body;
  assert.equal(page.messages.length, 0);
  const lateMs = Date.now() - Date.parse(page.indexed_until ?? '');
  assert.ok(lateMs >= 600_000 && lateMs < 660_000, `${lateMs} ms`);
  type Ready = Readonly<{
    status: string;
    checks: Readonly<Record<string, Readonly<{ status: string; message?: string }>>>;
  }>;
  const ready = await idle.api.get<Ready>('/readyz');
  assert.equal(ready.status, 200);
  assert.match(ready.body.checks['dlq_index']?.message ?? '', /are not indexed: searches miss them/);
  const worker = await startTestSystem({ database: idle.database });
  t.after(() => worker.stop());
  await untilIndexed(idle);
  assert.equal((await idle.api.get<Page>(`${root}/messages?text=unseen`)).body.messages.length, 1);
});

type Redrive = Readonly<{ state: string; counts: Readonly<{ selected: number }> }>;

test('a redrive selects by text, also messages that are not indexed yet', async (t) => {
  const other = await startTestSystem({ kafka: 'local', env: { ROLES: 'api' } });
  t.after(() => other.drop());
  await other.broker?.createTopic('a.v1', 1);
  await storeMessage(other.db, { topic: 'a.v1', error: 'needle in hay' });
  await storeMessage(other.db, { topic: 'a.v2', error: 'hay' });
  const filter = { topic: 'a.*', text: 'NEEDLE hay' };
  const { body } = await other.api.post<Readonly<{ id: string }>>(`${root}/redrives`, {
    filter,
    reason: 'fixed',
  });
  const planned = await eventually(async () => {
    const { body: redrive } = await other.api.get<Redrive>(`${root}/redrives/${body.id}`);
    assert.notEqual(redrive.state, 'planning');
    return redrive;
  });
  assert.deepEqual([planned.state, planned.counts.selected], ['planned', 1]);
  assertError(
    await other.api.post(`${root}/redrives`, { filter: { text: '!!' }, reason: 'fixed' }),
    400,
    'SYS_DLQ_VALIDATION_ERROR',
  );
});

test('the command line has the same filters', async () => {
  const run = async (words: readonly string[]): Promise<string> => {
    const { code, out, err } = await runRedrive(['dlq', ...words, '--url', system.url]);
    assert.equal(code, 0, err);
    return out;
  };
  const listed = await run(['list', 'orders.*', '--text', 'timed', '--not-status', 'DEAD']);
  assert.match(listed, /orders\.v1 +timed out after 3000 ms/);
  assert.doesNotMatch(listed, /orders\.v2|payments/);
  assert.match(
    await run(['list', '--error-class', 'x.Timeout', '--consumer-group', 'billing', '--key', 'key-1']),
    /payments/,
  );
  const counted = await run(['facets', '--text', 'timed']);
  assert.match(counted, /^2 messages$/m);
  assert.match(counted, /1 +RESOLVED/);
});
