import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { unnestRows } from './unnest-rows.ts';
import { sql } from './sql.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase('empty')));
after(() => database.drop());

type Row = Readonly<{
  n: number;
  big: bigint | null;
  is: boolean | null;
  at: Date | null;
  text: string | null;
  json: string | null;
}>;

async function stored(rows: readonly Row[]): Promise<readonly Row[]> {
  return database.db.query<Row>(sql`
    SELECT given.n, given.big, given.is_so AS is, given.at, given.text, given.json::text AS json
    FROM ${unnestRows<Row>(sql`given`, rows, [
      [sql`n`, sql`int[]`, ({ n }) => n],
      [sql`big`, sql`bigint[]`, ({ big }) => big],
      [sql`is_so`, sql`boolean[]`, ({ is }) => is],
      [sql`at`, sql`timestamptz[]`, ({ at }) => at],
      [sql`text`, sql`text[]`, ({ text }) => text],
      [sql`json`, sql`json[]`, ({ json }) => json],
    ])}
    ORDER BY given.n`);
}

const none = { big: null, is: null, at: null, text: null, json: null };

test('whatever stands in a row comes to the database as it is', async () => {
  const anyText = fc
    .oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '',
        'NULL',
        'null',
        '{}',
        '","',
        '\\',
        '\\"',
        "'",
        ' a ',
        '\n\t',
        '😀',
        '{"a":[1,"\\u0041"]}',
      ),
    )
    .filter((text) => !text.includes('\0') && text.isWellFormed());
  const row = fc.record({
    big: fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
    is: fc.option(fc.boolean()),
    at: fc.option(fc.date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true })),
    text: fc.option(anyText),
    json: fc.option(fc.jsonValue().map((value) => JSON.stringify(value))),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(row, { maxLength: 20 }), async (list) => {
      const rows = list.map((one, n) => ({ n, ...one }));
      assert.deepEqual(await stored(rows), rows);
    }),
    { numRuns: 200 },
  );
});

test('rows of which nothing but the first column is known are there all the same', async () => {
  const rows = [1, 2, 3].map((n) => ({ n, ...none }));
  assert.deepEqual(await stored(rows), rows);
  assert.deepEqual(await stored([]), []);
  const nothing = unnestRows(sql`given`, [null, null], [[sql`text`, sql`text[]`, (value) => value]]);
  assert.equal((await database.db.query(sql`SELECT given.text FROM ${nothing}`)).length, 2);
});

test('a value that has no place in a column is an error, and is not stored as something else', () => {
  const columns = [[sql`n`, sql`jsonb[]`, (value: unknown) => value]] as const;
  for (const value of [{}, [1], Symbol('no')])
    assert.throws(() => unnestRows(sql`given`, [value], columns), TypeError);
});

test('the planner does not see how many there are, and goes by the key', async () => {
  await database.db.query(sql`CREATE TABLE public.items (id int PRIMARY KEY, filler text)`);
  await database.db.query(
    sql`INSERT INTO public.items SELECT n, repeat('x', 100) FROM generate_series(1, 5000) n`,
  );
  await database.db.query(sql`ANALYZE public.items`);
  const keys = Array.from({ length: 2000 }, (_, i) => i);
  const plan = await database.db.query<{ 'QUERY PLAN': string }>(sql`
    EXPLAIN SELECT * FROM ${unnestRows(sql`wanted`, keys, [[sql`key`, sql`int[]`, (key) => key]])}
    JOIN public.items i ON i.id = wanted.key`);
  assert.match(plan.map((line) => line['QUERY PLAN']).join('\n'), /Index Scan using items_pkey/);
});
