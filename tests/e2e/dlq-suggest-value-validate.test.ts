import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, type Answer, type ErrorBody } from '../support/api-client.ts';
import { edit, storeOneRecord, tagOf, tryEdit, versionsOf } from '../support/edits.ts';
import { runRedrive } from '../support/redrive-process.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { archiveEverything, historyOf, storeMessage } from '../support/stored-message.ts';

/** What the filter box, the download of a value and the edit form ask the server. */

const root = '/api/v1/dlq/messages';

let system: TestSystem;
before(async () => {
  system = await startTestSystem({ kafka: 'local', env: { DLQ_ALLOWED_TARGETS: 'orders.*' } });
  await system.broker?.createTopic('orders.v1', 1);
});
after(() => system.drop());

type Suggestions = Readonly<{
  values: readonly Readonly<{ value: string; label: string | null; count: number | null }>[];
  has_more: boolean;
}>;

async function suggest(query: string): Promise<readonly (readonly [string, number | null])[]> {
  const { status, body, text } = await system.api.get<Suggestions>(`${root}/suggest?${query}`);
  assert.equal(status, 200, text);
  return body.values.map(({ value, count }) => [value, count]);
}

describe('suggestions', () => {
  before(async () => {
    await system.db.query(sql`
      INSERT INTO dlq.dlq_messages
        (original_topic, error_message, status, error_class, consumer_group, message_key, fingerprint, created_at)
      SELECT 'orders.v' || i % 2, 'boom', CASE WHEN i = 0 THEN 'DEAD' ELSE 'PENDING' END,
             CASE WHEN i < 3 THEN 'java.net.SocketTimeoutException' ELSE 'x.Refused' END, 'billing-' || i % 3,
             CASE WHEN i = 9 THEN '\\xff00'::bytea ELSE convert_to('C-' || i % 4, 'UTF8') END,
             'v2:' || CASE WHEN i < 3 THEN 'aaaa' ELSE 'bbbb' END, now() - i * interval '1 second'
      FROM generate_series(0, 9) AS i`);
    await system.db.query(sql`
      UPDATE dlq.fingerprints SET class = 'x.Refused', template = 'refused by <name>' WHERE fingerprint = 'v2:bbbb'`);
  });
  after(() => system.db.query(sql`DELETE FROM dlq.dlq_messages`));

  test('have the values of each field with their counts, the most frequent first', async () => {
    for (const [query, expected] of [
      ['field=status&prefix=de', [['DEAD', 1]]],
      [
        'field=status',
        [
          ['PENDING', 9],
          ['DEAD', 1],
          ['RESOLVED', 0],
          ['RETRYING', 0],
        ],
      ],
      [
        'field=topic&prefix=ord',
        [
          ['orders.v0', 5],
          ['orders.v1', 5],
        ],
      ],
      [
        'field=error_class',
        [
          ['x.Refused', 7],
          ['java.net.SocketTimeoutException', 3],
        ],
      ],
      [
        'field=consumer_group&prefix=BILL',
        [
          ['billing-0', 4],
          ['billing-1', 3],
          ['billing-2', 3],
        ],
      ],
      ['field=fingerprint&prefix=v2:a', [['v2:aaaa', 3]]],
      [
        'field=key',
        [
          ['C-0', 3],
          ['C-1', 2],
          ['C-2', 2],
          ['C-3', 2],
        ],
      ],
      ['field=topic&prefix=nothing', []],
    ] as const)
      assert.deepEqual(await suggest(query), expected, query);
  });

  test('begin with the text, or contain it; a fingerprint is found by its error', async () => {
    assert.deepEqual(await suggest('field=error_class&prefix=timeout'), [
      ['java.net.SocketTimeoutException', 3],
    ]);
    assert.deepEqual(await suggest('field=consumer_group&prefix=-1'), [['billing-1', 3]]);
    const { body } = await system.api.get<Suggestions>(`${root}/suggest?field=fingerprint&prefix=refused`);
    assert.deepEqual(body.values, [{ value: 'v2:bbbb', label: 'x.Refused: refused by <name>', count: 7 }]);
  });

  test('say that there are more', async () => {
    const { body } = await system.api.get<Suggestions>(`${root}/suggest?field=consumer_group&limit=2`);
    assert.deepEqual([body.values.length, body.has_more], [2, true]);
  });

  test('of what is no field, or no text, are refused', async () => {
    for (const [query, field] of [
      ['', 'field'],
      ['field=payload', 'field'],
      ['field=topic&field=key', 'field'],
      [`field=topic&prefix=${'x'.repeat(257)}`, 'prefix'],
      ['field=topic&prefix=%00', 'prefix'],
      ['field=topic&limit=0', 'limit'],
      ['field=topic&limit=51', 'limit'],
      ['field=topic&q=o', 'q'],
    ] as const) {
      const answer = await system.api.get(`${root}/suggest?${query}`);
      assert.equal(assertError(answer, 400, 'SYS_DLQ_VALIDATION_ERROR').details[0]?.field, field, query);
    }
    for (const text of ["a' OR 1=1 --", '%', '_', '\\', '在庫'])
      await suggest(`field=key&prefix=${encodeURIComponent(text)}`);
  });

  test('are printed by redrive dlq suggest', async () => {
    const { code, out } = await runRedrive(['dlq', 'suggest', 'topic', 'v1', '--url', system.url]);
    assert.equal(code, 0);
    assert.match(out, /orders\.v1 +5/);
    assert.equal((await runRedrive(['dlq', 'suggest', 'topics', '--url', system.url])).code, 2);
  });
});

describe('the value of a message', () => {
  const bytes = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 256));
  let id: string;
  before(async () => {
    id = await storeOneRecord(system.db, 'orders.v1', '');
    await system.db.query(sql`UPDATE dlq.dlq_messages SET raw_value = ${bytes} WHERE id = ${id}`);
  });
  after(() => system.db.query(sql`DELETE FROM dlq.dlq_messages`));

  const read = async (query = '', headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`${system.url}${root}/${id}/value${query}`, { headers });
    return { response, body: Buffer.from(await response.arrayBuffer()) };
  };

  test('is a file that no browser shows as a page', async () => {
    const { response, body } = await read();
    assert.deepEqual([response.status, body], [200, bytes]);
    const shown = ['content-type', 'content-disposition', 'x-content-type-options', 'accept-ranges', 'etag'];
    assert.deepEqual(
      shown.map((name) => response.headers.get(name)),
      ['application/octet-stream', `attachment; filename="${id}-0.bin"`, 'nosniff', 'bytes', '"0"'],
    );
  });

  test('is read in parts', async () => {
    const { response, body } = await read('', { range: 'bytes=250-259' });
    assert.deepEqual([response.status, body], [206, bytes.subarray(250, 260)]);
    assert.equal(response.headers.get('content-range'), 'bytes 250-259/1000');
    assert.deepEqual((await read('', { range: 'bytes=-5' })).body, bytes.subarray(995));
    assert.equal((await read('', { range: 'bytes=0-1,5-6' })).response.status, 200);
    const behind = await read('', { range: 'bytes=1000-' });
    assert.deepEqual(
      [behind.response.status, behind.response.headers.get('content-range')],
      [416, 'bytes */1000'],
    );
    assert.equal((await read('', { range: 'bytes=0-0', 'if-range': '"0"' })).response.status, 206);
    assert.equal((await read('', { range: 'bytes=0-0', 'if-range': '"1"' })).response.status, 200);
  });

  test('has versions; null is no file, and an empty value is one', async () => {
    await edit(system.api, id, { value: '' });
    const empty = await read();
    assert.deepEqual(
      [empty.response.status, empty.body.length, empty.response.headers.get('etag')],
      [200, 0, '"1"'],
    );
    await edit(system.api, id, { value: null });
    assert.equal((await read()).response.status, 404);
    assert.deepEqual((await read('?version=0')).body, bytes);
    for (const query of ['/value?version=9', '/value'])
      assertError(await system.api.get(`${root}/${randomUUID()}${query}`), 404, 'SYS_DLQ_NOT_FOUND');
    assertError(await system.api.get(`${root}/${id}/value?version=9`), 404, 'SYS_DLQ_NOT_FOUND');
    assertError(await system.api.get(`${root}/${id}/value?version=x`), 400, 'SYS_DLQ_VALIDATION_ERROR');
    assertError(await system.api.get(`${root}/7/value`), 400, 'SYS_DLQ_VALIDATION_ERROR');
  });

  test('that was stored as JSON alone is its text, and a longer one than an answer is read in parts', async () => {
    id = await storeMessage(system.db, { payload: { n: 1 } });
    assert.equal((await read()).body.toString(), '{"n": 1}');
    assert.equal((await read('', { range: 'bytes=1-3' })).body.toString(), '"n"');
    await system.db.query(sql`
      UPDATE dlq.dlq_messages SET source_topic = 'orders.dlq', raw_value = convert_to(repeat('x', ${33 << 20}), 'UTF8')
      WHERE id = ${id}`);
    const whole = await system.api.get(`${root}/${id}/value`);
    assert.match(assertError(whole, 413, 'SYS_DLQ_TOO_LARGE').message, /Range/);
    const part = await read('', { range: `bytes=${32 << 20}-` });
    assert.deepEqual([part.response.status, part.body.length], [206, 1 << 20]);
  });
});

describe('a refusal because of the state of a message', () => {
  after(() => system.db.query(sql`DELETE FROM dlq.dlq_messages`));

  test('carries the message as it is now, whatever was asked', async () => {
    const id = await storeMessage(system.db, { topic: 'orders.v1', status: 'RESOLVED', retryCount: 1 });
    const tag = await tagOf(system.api, id);
    const expected = {
      id,
      original_topic: 'orders.v1',
      retry_count: 1,
      max_retries: 3,
      status: 'RESOLVED',
      attempt_no: 0,
      unroutable: false,
      routed: false,
      version: 0,
      archived: false,
      being_retried: false,
      etag: tag,
    };
    const refused = [
      await system.api.post(`${root}/${id}/retry`),
      await system.api.post(`${root}/${id}/dead`),
      await system.api.post(`${root}/${id}/route`, { target_topic: 'orders.v1', reason: 'why' }),
      await tryEdit(system.api, id, { value: 'a' }),
    ];
    for (const answer of refused) {
      assertError(answer, 409, 'SYS_DLQ_CONFLICT');
      assert.deepEqual((answer.body as ErrorBody).current, expected);
    }
    assert.equal((await system.api.post(`${root}/${id}/reopen`, { reason: 'again' })).status, 200);
    const stale = await tryEdit(system.api, id, { value: 'a' }, tag);
    assertError(stale, 412, 'SYS_DLQ_PRECONDITION_FAILED');
    const now = await tagOf(system.api, id);
    const { current } = stale.body as ErrorBody;
    assert.deepEqual([current?.['status'], current?.['etag']], ['PENDING', now]);
    assert.notEqual(now, tag);

    await system.api.post(`${root}/${id}/dead`);
    await archiveEverything(system.db);
    const { body } = await system.api.post(`${root}/${id}/validate`, { value: 'a' });
    assert.equal((body as ErrorBody).current?.['archived'], true);
  });

  test('other errors carry none', async () => {
    assert.deepEqual(
      Object.keys((await system.api.post(`${root}/${randomUUID()}/retry`)).body as ErrorBody),
      ['error'],
    );
  });
});

type Validation = Readonly<{
  valid: boolean;
  version: number;
  problems: readonly Readonly<{
    status: number;
    code: string;
    details: readonly Readonly<{ field: string }>[];
  }>[];
  warnings: readonly Readonly<{ field: string; reason: string; message: string }>[];
  value: Readonly<{ bytes: number | null; format: string }> | null;
  target: Readonly<{ topic: string; state: string; consumer_groups: readonly string[] | null }>;
}>;

describe('the check of an edit', () => {
  let id: string;
  before(async () => void (id = await storeOneRecord(system.db, 'orders.v1', '{"qty":1}')));
  after(() => system.db.query(sql`DELETE FROM dlq.dlq_messages`));

  const check = (body: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer<Validation>> =>
    system.api.post<Validation>(`${root}/${id}/validate`, body, headers);
  const reasons = ({ body }: Answer<Validation>): readonly string[] =>
    body.warnings.map(({ reason }) => reason);

  test('says what the edit would make, and changes nothing', async () => {
    await system.db.query(sql`UPDATE dlq.dlq_messages SET payload = '{"qty":1}' WHERE id = ${id}`);
    const tag = await tagOf(system.api, id);
    const { status, body, headers, text } = await check({ value: '{"qty":2}' }, { 'if-match': tag });
    assert.equal(status, 200, text);
    assert.deepEqual(body, {
      id,
      valid: true,
      version: 1,
      problems: [],
      warnings: [
        {
          field: 'target_topic',
          reason: 'no_reader',
          message: 'no consumer group has committed offsets of orders.v1',
        },
      ],
      value: { bytes: 9, format: 'json' },
      target: { topic: 'orders.v1', state: 'writable', consumer_groups: [] },
    });
    assert.equal(headers.get('etag'), tag);
    assert.equal(await tagOf(system.api, id), tag);
    assert.equal((await versionsOf(system.api, id)).length, 1);
    assert.deepEqual(await historyOf(system.api, id), []);
  });

  test('names the groups that read the target', async () => {
    const partition = await system.broker?.partitions((topic) => topic === 'orders.v1');
    const [place] = partition?.partitions ?? [];
    assert.ok(place);
    await system.broker?.mirror('billing', [{ ...place, offset: 0n }]);
    assert.deepEqual((await check({ value: '{}' })).body.target.consumer_groups, ['billing']);
  });

  test('warns of what the edit would not be refused for', async () => {
    assert.deepEqual(reasons(await check({ value: '{"qty":' })), ['not_json']);
    assert.deepEqual(reasons(await check({ value: null })), ['tombstone']);
    const binary = await check({ value_base64: '/wA=', target_topic: 'orders.v9' });
    assert.deepEqual(reasons(binary), ['not_json', 'missing']);
    assert.deepEqual([binary.body.valid, binary.body.value], [true, { bytes: 2, format: 'binary' }]);
    await system.api.post(`${root}/${id}/dead`);
    assert.deepEqual(reasons(await check({ value: '{}' })), ['dead']);
  });

  test('lists all that the edit would be refused for, with its status', async () => {
    const { body } = await check({ headers: [], target_topic: 'orders.dlq' }, { 'if-match': '"9-9"' });
    assert.deepEqual(
      body.problems.map(({ status, code }) => [status, code]),
      [
        [422, 'SYS_DLQ_WRONG_TARGET'],
        [412, 'SYS_DLQ_PRECONDITION_FAILED'],
      ],
    );
    assert.equal(body.valid, false);
    for (const changes of [{}, { target_topic: 'bills.v1' }, { key: 'a', key_base64: 'YQ==' }]) {
      const [problem] = (await check(changes)).body.problems;
      const refused = await tryEdit(system.api, id, changes);
      assert.deepEqual([problem?.status, problem?.code], [refused.status, assertError(refused, 422).code]);
    }
  });

  test('refuses what is no edit, or no message', async () => {
    for (const body of [
      { value_base64: '!' },
      { value: 1 },
      { valeu: 'a' },
      [],
      { headers: [{}] },
      { value: 'a', reason: '' },
    ])
      assertError(await check(body), 400, 'SYS_DLQ_VALIDATION_ERROR');
    assertError(await check({ value: 'a' }, { 'if-match': 'x' }), 400, 'SYS_DLQ_VALIDATION_ERROR');
    assertError(
      await system.api.post(`${root}/${randomUUID()}/validate`, { value: 'a' }),
      404,
      'SYS_DLQ_NOT_FOUND',
    );
    await archiveEverything(system.db);
    assertError(await check({ value: 'a' }), 409, 'SYS_DLQ_CONFLICT');
    await system.api.post(`${root}/${id}/reopen`, { reason: 'again' });
  });

  test('is redrive dlq edit --dry-run', async () => {
    const words = ['dlq', 'edit', id, '--reason', 'why', '--key', 'x', '--dry-run', '--url', system.url];
    const { code, out, err } = await runRedrive(words);
    assert.deepEqual([code, out], [0, 'target: orders.v1 (writable), read by billing\n'], err);
    assert.match(err, /the edit would make version 1/);
    const refused = await runRedrive([...words, '--target', 'bills.v1']);
    assert.equal(refused.code, 1);
    assert.match(refused.out, /bills\.v1 is not in dlq\.allowed_targets/);
    assert.equal((await versionsOf(system.api, id)).length, 1);
  });
});
