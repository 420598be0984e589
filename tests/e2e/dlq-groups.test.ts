import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { runRedrive } from '../support/redrive-process.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { storeMessage, type ListView } from '../support/stored-message.ts';

const root = '/api/v1/dlq';

type GroupView = Readonly<{
  fingerprint: string;
  title: string;
  error_class: string | null;
  count: number;
  counts: Readonly<Record<string, number>>;
  topics: readonly string[];
  consumer_groups: readonly string[];
  trend: readonly number[];
  badges: readonly string[];
  sample_id: string | null;
}>;
type GroupsView = Readonly<{
  groups: readonly GroupView[];
  pagination: Readonly<{ total_count: number; next_cursor?: string | null }>;
}>;
type DetailsView = GroupView &
  Readonly<{ why: unknown; top_keys: readonly unknown[]; by_topic: readonly unknown[] }>;

let system: TestSystem;
before(async () => {
  system = await startTestSystem({ kafka: 'local' });
});
after(() => system.drop());
beforeEach(async () => {
  // A TRUNCATE could deadlock with the indexer.
  await system.db.query(sql`DELETE FROM dlq.dlq_messages`);
  await system.db.query(sql`DELETE FROM dlq.dlq_messages_archive`);
  await system.db.query(sql`DELETE FROM dlq.group_counts`);
  await system.db.query(sql`DELETE FROM dlq.group_changes`);
  await system.db.query(sql`DELETE FROM dlq.fingerprints`);
});

const print = (start: string): string => `v2:${start.padEnd(32, '0')}`;

async function store(
  fingerprint: string | null,
  more: Readonly<{ topic?: string; status?: 'DEAD' | 'RESOLVED'; group?: string; key?: string }> = {},
): Promise<string> {
  const id = await storeMessage(system.db, { ...more, topic: more.topic ?? 'orders.v1' });
  await system.db.query(sql`
    UPDATE dlq.dlq_messages
    SET fingerprint = ${fingerprint}, consumer_group = ${more.group ?? null},
        message_key = ${more.key === undefined ? null : Buffer.from(more.key)}
    WHERE id = ${id}`);
  return id;
}

async function list(query = ''): Promise<GroupsView> {
  const { status, body, text } = await system.api.get<GroupsView>(`${root}/groups${query}`);
  assert.equal(status, 200, text);
  return body;
}

async function show(fingerprint: string): Promise<DetailsView> {
  const { status, body, text } = await system.api.get<DetailsView>(`${root}/groups/${fingerprint}`);
  assert.equal(status, 200, text);
  return body;
}

describe('the list of groups', () => {
  test('it counts by status, and names topics, consumer groups and the newest message', async () => {
    await store(print('a'), { topic: 'a.v1', group: 'billing' });
    await store(print('a'), { topic: 'a.v1', group: 'billing', status: 'DEAD' });
    const newest = await store(print('a'), { topic: 'b.v1' });
    await store(null);
    const { groups, pagination } = await list();
    const [group] = groups;
    assert.equal(groups.length, 1);
    assert.equal(pagination.total_count, 1);
    assert.deepEqual(
      [group?.title, group?.count, group?.counts, group?.topics, group?.consumer_groups, group?.badges],
      [
        'processing failed',
        3,
        { PENDING: 2, RETRYING: 0, RESOLVED: 0, DEAD: 1 },
        ['a.v1', 'b.v1'],
        ['billing'],
        ['new'],
      ],
    );
    assert.equal(group?.trend.length, 24);
    assert.equal(group?.sample_id, newest);
  });

  test('it filters by what groups are counted by, and refuses everything else', async () => {
    await store(print('a'), { topic: 'a.v1', group: 'billing' });
    await store(print('a'), { topic: 'b.v1', status: 'DEAD' });
    await store(print('b'), { topic: 'b.v1', group: 'billing' });
    const counts = async (query: string): Promise<unknown> =>
      Object.fromEntries((await list(query)).groups.map((one) => [one.fingerprint.slice(3, 4), one.count]));
    assert.deepEqual(await counts('?topic=b.v1'), { a: 1, b: 1 });
    assert.deepEqual(await counts('?topic=b.v1&status=DEAD'), { a: 1 });
    assert.deepEqual(await counts('?consumer_group=billing'), { a: 1, b: 1 });
    assert.deepEqual(await counts(`?fingerprint=${print('b')}`), { b: 1 });
    assert.deepEqual(await counts('?error_class=x'), {});
    assert.deepEqual(await counts('?topic=nothing'), {});
    for (const query of [
      'key=k',
      'text=x',
      'since=2026-01-01T00:00:00Z',
      'status=dead',
      'cursor=x',
      'topic=',
    ])
      assertError(await system.api.get(`${root}/groups?${query}`), 400, 'SYS_DLQ_VALIDATION_ERROR');
  });

  test('pages by cursor show every group once', async () => {
    for (const start of ['a', 'b', 'c', 'd', 'e']) await store(print(start));
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: GroupsView = await list(`?page_size=2&cursor=${cursor}`);
      seen.push(...page.groups.map(({ fingerprint }) => fingerprint.slice(3, 4)));
      cursor = page.pagination.next_cursor ?? null;
    }
    assert.deepEqual(seen, ['e', 'd', 'c', 'b', 'a']);
    assert.equal((await list('?page=3&page_size=2')).groups[0]?.fingerprint, print('a'));
  });

  test('a group whose messages are gone is not listed, and a topic called groups is reached by its filter', async () => {
    const id = await store(print('a'), { topic: 'groups' });
    assert.equal((await list()).groups.length, 1);
    const messages = await system.api.get<ListView>(`${root}/messages?topic=groups`);
    assert.deepEqual(
      messages.body.messages.map((one) => one.id),
      [id],
    );
    await system.db.query(sql`DELETE FROM dlq.dlq_messages WHERE id = ${id}`);
    assert.deepEqual((await list()).groups, []);
    assertError(await system.api.get(`${root}/groups/${print('a')}`), 404, 'SYS_DLQ_NOT_FOUND');
  });
});

describe('one group', () => {
  test('it is found by a prefix that no other has', async () => {
    await store(print('abcd1'), { key: 'k1', group: 'billing' });
    await store(print('abcd1'), { key: 'k1' });
    await store(print('abcd1'), { key: 'k2' });
    await store(print('abcd2'));
    for (const text of [print('abcd1'), 'v2:abcd1', 'abcd1']) {
      const group = await show(text);
      assert.equal(group.fingerprint, print('abcd1'));
      assert.deepEqual(group.top_keys, [
        { key: 'k1', count: 2 },
        { key: 'k2', count: 1 },
      ]);
      const none = { RETRYING: 0, RESOLVED: 0, DEAD: 0 };
      assert.deepEqual(group.by_topic, [
        { topic: 'orders.v1', consumer_group: null, counts: { PENDING: 2, ...none } },
        { topic: 'orders.v1', consumer_group: 'billing', counts: { PENDING: 1, ...none } },
      ]);
      assert.deepEqual(group.why, { version: null, class: null, template: null, frame: null });
    }
    const error = assertError(await system.api.get(`${root}/groups/abcd`), 400, 'SYS_DLQ_VALIDATION_ERROR');
    assert.match(error.details[0]?.message ?? '', /v2:abcd1.*v2:abcd2/);
    for (const unknown of ['abce', 'abc', 'v2:', 'v1:abcd1', "'%00", '%', 'zzzz'])
      assert.ok(
        [400, 404].includes((await system.api.get(`${root}/groups/${encodeURIComponent(unknown)}`)).status),
      );
  });

  test('dead letters are grouped as they arrive, and one that comes back counts as one more failure', async () => {
    const { broker, db, api } = system;
    assert.ok(broker);
    const header = (key: string, value: string) => ({ key: Buffer.from(key), value: Buffer.from(value) });
    const letter = (n: number, extra: readonly ReturnType<typeof header>[] = []) => ({
      topic: 'orders.dlq.v1',
      key: Buffer.from('k'),
      value: Buffer.from(String(n)),
      headers: [header('error', `TimeoutError: no answer for order ${n} within ${n} ms`), ...extra],
    });
    await broker.createTopic('orders.dlq.v1', 1);
    await broker.createTopic('orders.v1', 1);
    await broker.publish([letter(1), letter(2)], { timeoutMs: 5000 });
    const group = await eventually(async () => {
      const [found] = (await list()).groups;
      assert.equal(found?.count, 2);
      return found;
    });
    const details = await show(group.fingerprint);
    assert.deepEqual(details.why, {
      version: 2,
      class: 'TimeoutError',
      template: 'no answer for order <n> within <n> ms',
      frame: null,
    });
    assert.equal(details.trend.at(-1), 2);
    const id = group.sample_id ?? '';
    await api.post(`${root}/messages/${id}/retry`);
    const [row] = await db.query<{ value: string }>(
      sql`SELECT convert_from(raw_value, 'UTF8') AS value FROM dlq.dlq_messages WHERE id = ${id}`,
    );
    await broker.publish(
      [letter(Number(row?.value), [header('redrive-message-id', id), header('redrive-attempt', '1')])],
      { timeoutMs: 5000 },
    );
    await eventually(async () => assert.equal((await show(group.fingerprint)).trend.at(-1), 3));
    assert.equal((await show(group.fingerprint)).count, 2);
  });
});

test('commands list groups, show one by a prefix, and derive fingerprints', async () => {
  await store(print('abcd1'), { topic: 'a.v1', key: 'k1' });
  await store(null, { topic: 'b.v1' });
  const env = { DATABASE_URL: system.database.url, KAFKA_ENABLED: 'false' };
  const derived = await runRedrive(['dlq', 'fingerprints', 'derive', '--json'], env);
  assert.deepEqual(JSON.parse(derived.out), { changed: 1, skipped: 0 });
  const listed = await runRedrive(['dlq', 'groups', '--url', system.url], {});
  assert.match(listed.out, /^GROUP +COUNT/);
  assert.match(listed.out, /v2:abcd1000 +1 .*new +a\.v1 +processing failed/);
  assert.doesNotMatch(listed.out, /24 HOURS/, 'the trend is for terminals');
  const shown = await runRedrive(['dlq', 'group', 'abcd', '--url', system.url], {});
  assert.match(shown.out, /fingerprint +v2:abcd10/);
  assert.match(shown.out, /1 {2}k1/);
});
