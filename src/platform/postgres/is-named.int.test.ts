import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import {
  dimensions,
  passAll,
  passes,
  type NameFilter,
  type NameFilters,
  type Resource,
} from '../../kernel/access/scope.ts';
import { areAllNamed, areNamed, isNamed, isVisible } from './is-named.ts';
import { sql } from './sql.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const letters = fc.constantFrom('a', 'b', '.', '%', '_', '\\', '😀');
const names = fc.array(fc.string({ unit: letters, maxLength: 5 }), { minLength: 1, maxLength: 20 });
const globs = fc.array(fc.string({ unit: fc.oneof(letters, fc.constant('*')), minLength: 1, maxLength: 5 }), {
  minLength: 1,
  maxLength: 3,
});
const filters: fc.Arbitrary<NameFilter> = fc.option(
  fc.array(fc.array(globs, { minLength: 1, maxLength: 2 }), { maxLength: 3 }),
);

test('an item with several names is shown exactly if the filter lets all of them through', async () => {
  await fc.assert(
    fc.asyncProperty(filters, fc.array(letters, { maxLength: 3 }), async (filter, some) => {
      const [row] = await database.db.query<{ all: boolean }>(sql`
        SELECT ${areNamed(sql`t.names`, filter)} AS all FROM (SELECT ${some}::text[] AS names) AS t`);
      const isShown = filter === null || (some.length > 0 && some.every((name) => passes(filter, name)));
      assert.equal(row?.all, isShown);
    }),
    { numRuns: 200 },
  );
  const [unknown] = await database.db.query<{ all: boolean | null }>(sql`
    SELECT ${areNamed(sql`NULL::text[]`, [[['*']]])} AS all`);
  assert.notEqual(unknown?.all, true);
});

test('a list in SQL shows exactly the names that the filter lets through', async () => {
  await fc.assert(
    fc.asyncProperty(filters, names, async (filter, some) => {
      const rows = await database.db.query<{ name: string }>(sql`
        SELECT t.name FROM unnest(${some}::text[]) AS t (name) WHERE ${isNamed(sql`t.name`, filter)}`);
      assert.deepEqual(
        rows.map(({ name }) => name),
        some.filter((name) => passes(filter, name)),
      );
    }),
    { numRuns: 200 },
  );
});

const some = fc.option(fc.array(letters, { maxLength: 3 }), { nil: undefined });
const resources = fc.record({ topics: some, queues: some, destinations: some, workflows: some });
const allFilters = fc.record({ topics: filters, queues: filters, destinations: filters, workflows: filters });

test('what has names of several kinds is shown exactly if the filters let all of them through', async () => {
  const isShown = async (filter: NameFilters, names: Resource): Promise<boolean | null> => {
    const columns = Object.fromEntries(
      dimensions.map((dimension) => [dimension, sql`${names[dimension] ?? null}::text[]`]),
    ) as Parameters<typeof areAllNamed>[0];
    const [row] = await database.db.query<{ shown: boolean | null }>(sql`
      SELECT ${areAllNamed(columns, filter)} AS shown`);
    return row?.shown ?? null;
  };
  await fc.assert(
    fc.asyncProperty(allFilters, resources, async (filter, found) => {
      const names = Object.fromEntries(
        Object.entries(found).filter(([, list]) => list !== undefined),
      ) as Resource;
      assert.equal(await isShown(filter, names), passAll(filter, names));
    }),
    { numRuns: 300 },
  );
  const narrow: NameFilters = { topics: [[['in.*']]], queues: [], destinations: [], workflows: [] };
  for (const [names, shown] of [
    [{ topics: ['in.a', 'in.b'] }, true],
    [{ topics: ['in.a', 'out.a'] }, false],
    [{ topics: ['in.a'], queues: ['mail'] }, false],
    [{ topics: [] }, false],
    [{}, false],
  ] as const) {
    assert.equal(await isShown(narrow, names), shown);
    assert.equal(passAll(narrow, names), shown);
  }
});

test('of the rows of other names, a list shows those of the caller as far as the names of its own let them through', async () => {
  const rowsOf = fc.array(fc.tuple(letters, fc.constantFrom('me', 'you', null)), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(filters, fc.option(filters), rowsOf, async (filter, ofOwn, some) => {
      const own = ofOwn === null ? null : { subject: 'me', names: ofOwn };
      const rows = await database.db.query<{ name: string; by: string | null }>(sql`
        SELECT t.name, t.by FROM unnest(${some.map(([name]) => name)}::text[], ${some.map(([, by]) => by)}::text[])
                                 AS t (name, by)
        WHERE ${isVisible({ names: filter, own }, { name: sql`t.name`, isOf: (subject) => sql`t.by = ${subject}` })}`);
      const isShown = (name: string, by: string | null): boolean =>
        passes(filter, name) || (own !== null && by === own.subject && passes(own.names, name));
      assert.deepEqual(
        rows.map(({ name, by }) => [name, by]),
        some.filter(([name, by]) => isShown(name, by)),
      );
    }),
    { numRuns: 200 },
  );
});
