import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { decodeCursor, encodeCursor, paginationOf, readPage } from './page.ts';

const createdAt = '2026-02-20 10:30:00.123456+00';
const id = '550e8400-e29b-41d4-a716-446655440000';

const encodeJson = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

test('a cursor gives back its values at full microsecond precision', () => {
  for (const instant of [createdAt, '2026-02-20T10:30:00.123456Z', '2026-02-20 10:30:00+00']) {
    assert.deepEqual(decodeCursor(encodeCursor([instant, id])), [instant, id]);
  }
});

test('a cursor of another shape decodes with that shape only', () => {
  const cursor = encodeCursor(['42', 'orders.events.v1']);
  assert.deepEqual(decodeCursor(cursor, ['bigint', 'text']), ['42', 'orders.events.v1']);
  assert.equal(decodeCursor(cursor), null);
});

test('a cursor that we did not make is refused', () => {
  const forged = [
    '',
    'not base64!',
    'AAAA',
    `${encodeCursor([createdAt, id])}=`,
    encodeJson({ 0: 1 }),
    encodeJson([2, createdAt, id]),
    encodeJson([1, createdAt]),
    encodeJson([1, createdAt, id, 'more']),
    encodeJson([1, createdAt, 7]),
    encodeJson([1, createdAt, 'not-a-uuid']),
    encodeJson([1, 'yesterday', id]),
    encodeJson([1, '+infinity', id]),
    encodeJson([1, '294276-01-01 00:00:00Z', id]),
    encodeJson([1, '12345-02-29 00:00:00Z', id]),
    encodeJson([1, '2026-02-31 10:30:00+00', id]),
    encodeJson([1, '2026-02-20 25:30:00+00', id]),
    encodeJson([1, '0000-01-01 00:00:00+00', id]),
    encodeJson([1, '2026-02-20 10:30:00.1234567+00', id]),
    encodeJson([1, '2026-02-20 10:30:00+09', id]),
    'A'.repeat(2000),
  ];
  for (const text of forged) assert.equal(decodeCursor(text), null, text);
});

test('a row of any time that PostgreSQL has after Christ can be the last of a page', () => {
  for (const time of ['infinity', '-infinity', '12344-02-29T00:00:00.000000Z', '0001-01-01 00:00:00+00'])
    assert.deepEqual(decodeCursor(encodeCursor([time, id])), [time, id]);
});

test('a cursor has one spelling', () => {
  const cursor = encodeCursor([createdAt, id]);
  const bytes = Buffer.from(cursor, 'base64url');
  const respelled = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    .split('')
    .map((last) => cursor.slice(0, -1) + last)
    .filter((text) => text !== cursor && Buffer.from(text, 'base64url').equals(bytes));
  assert.ok(respelled.length > 0);
  for (const text of respelled) assert.equal(decodeCursor(text), null);
});

test('text in a cursor is bounded and fit for PostgreSQL', () => {
  for (const text of ['a'.repeat(256), 'nul\0', '\ud800']) {
    assert.equal(decodeCursor(encodeJson([1, text]), ['text']), null);
  }
  for (const number of ['01', '-0', '1e3', '9999999999999999999']) {
    assert.equal(decodeCursor(encodeJson([1, number]), ['bigint']), null);
  }
});

test('decoding never throws, whatever the text', () => {
  const hostile = fc.oneof(fc.string({ unit: 'binary' }), fc.base64String(), fc.json().map(encodeJson));
  fc.assert(
    fc.property(hostile, (text) => {
      const values = decodeCursor(text);
      assert.ok(values === null || values.length === 2);
    }),
  );
});

test('a query without a page gets the first twenty', () => {
  assert.deepEqual(readPage({}), { by: 'number', page: 1, pageSize: 20, offset: 0 });
  assert.deepEqual(readPage({ page: 3, page_size: 50 }), {
    by: 'number',
    page: 3,
    pageSize: 50,
    offset: 100,
  });
});

test('an empty cursor asks for the first page by keyset, a foreign one is refused', () => {
  assert.deepEqual(readPage({ cursor: '' }), { by: 'keyset', page: 1, pageSize: 20, after: null });
  assert.deepEqual(readPage({ cursor: encodeCursor([createdAt, id]), page_size: 5 }), {
    by: 'keyset',
    page: 1,
    pageSize: 5,
    after: [createdAt, id],
  });
  assert.equal(readPage({ cursor: 'forged' }), null);
});

test('a numbered page has exactly the four known fields', () => {
  assert.equal(
    JSON.stringify(paginationOf({ total: 150, page: 1, pageSize: 20 })),
    '{"total_count":150,"page":1,"page_size":20,"has_next":true}',
  );
});

test('the last page has no next one, and neither has an empty list', () => {
  assert.equal(paginationOf({ total: 40, page: 2, pageSize: 20 }).has_next, false);
  assert.equal(paginationOf({ total: 41, page: 2, pageSize: 20 }).has_next, true);
  assert.equal(paginationOf({ total: 0, page: 1, pageSize: 20 }).has_next, false);
});

test('a list that read one row more knows better than an estimated total', () => {
  const pagination = paginationOf({ total: 10, isEstimate: true, page: 1, pageSize: 20, hasNext: true });
  assert.deepEqual(pagination, {
    total_count: 10,
    page: 1,
    page_size: 20,
    has_next: true,
    total_is_estimate: true,
  });
});

test('a list read by keyset tells its next cursor, and null at the end', () => {
  const facts = { total: 3, page: 1, pageSize: 2 };
  assert.deepEqual(paginationOf({ ...facts, nextCursor: 'abc' }), {
    total_count: 3,
    page: 1,
    page_size: 2,
    has_next: true,
    next_cursor: 'abc',
  });
  assert.equal(paginationOf({ ...facts, nextCursor: null }).has_next, false);
  assert.equal(paginationOf({ ...facts, nextCursor: null }).next_cursor, null);
});
