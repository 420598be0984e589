import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinSql, sql } from './sql.ts';

test('every value is a bound parameter, and a spliced part brings its own', () => {
  const part = sql`status = ${'PENDING'} AND retry_count < ${3}`;
  const statement = sql`SELECT id FROM t WHERE ${part} AND topic = ${"x'; DROP TABLE t"} LIMIT ${10}`;
  assert.equal(
    statement.text,
    'SELECT id FROM t WHERE status = $1 AND retry_count < $2 AND topic = $3 LIMIT $4',
  );
  assert.deepEqual(statement.values, ['PENDING', 3, "x'; DROP TABLE t", 10]);
});

test('parts nest to any depth and may stand side by side', () => {
  const one = sql`a = ${1}`;
  const two = sql`(${one} OR ${sql`b = ${2}`})`;
  const statement = sql`${two}${sql``} AND ${joinSql([one, sql`c`, one], sql` AND `)}`;
  assert.equal(statement.text, '(a = $1 OR b = $2) AND a = $3 AND c AND a = $4');
  assert.deepEqual(statement.values, [1, 2, 1, 1]);
  assert.equal(joinSql([], sql`, `).text, '');
});
