import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { Client } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import {
  brokenTexts,
  jsonTexts,
  numberTexts,
  rfcNumbers,
  rfcOrder,
  rfcSample,
} from '../../../tests/support/json-texts.ts';
import { canonicalJson } from '../../kernel/canonical-json.ts';
import { parseExactJson } from '../../kernel/exact-json.ts';
import { requestDigest } from '../domain/request-digest.ts';

/** SQL and TypeScript agree on every text, also in a session with unusual settings. */
let database: TestDatabase;
let session: Client;

const unhelpful = `
  CREATE SCHEMA evil;
  CREATE FUNCTION evil.replace(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'evil'::text $$;
  CREATE FUNCTION evil.length(text) RETURNS int LANGUAGE sql AS $$ SELECT 0 $$;
  CREATE FUNCTION evil.less(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
  CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.less);
  CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (VALUE = 'evil');
  CREATE DOMAIN pg_temp.float8 AS pg_catalog.float8 CHECK (VALUE = 0);
  CREATE DOMAIN pg_temp.jsonb AS pg_catalog.jsonb CHECK (VALUE = '0');
  SET search_path = pg_temp, evil, pg_catalog;
  SET extra_float_digits = 0;
  SET standard_conforming_strings = off;
  SET escape_string_warning = off;
  SET bytea_output = 'escape';
  SET array_nulls = off;
  SET work_mem = '64kB';
  SET temp_file_limit = '128MB';
  SET max_stack_depth = '200kB';
  SET statement_timeout = '30s';`;

before(async () => {
  database = await createTestDatabase();
  session = new Client({ connectionString: database.url });
  await session.connect();
  await session.query(unhelpful);
});
after(async () => {
  await session.end();
  await database.drop();
});

type Said = Readonly<{ isJson: boolean; canonical: string | null; digest: string | null }>;

const DESTINATION = 'bröker "1"';

async function askDatabase(texts: readonly string[], orderingKey: string | null): Promise<readonly Said[]> {
  const { rows } = await session.query<Said>(
    `SELECT j IS NOT NULL AS "isJson", outbox.canonical_json(j) AS canonical,
            outbox.request_digest($2, $3, j) AS digest
     FROM (
       SELECT n, CASE WHEN pg_catalog.pg_input_is_valid(t, 'pg_catalog.json') THEN t::pg_catalog.json END AS j
       FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS texts (t, n)
       OFFSET 0
     ) AS x
     ORDER BY n`,
    [texts, DESTINATION, orderingKey],
  );
  return rows;
}

function askTypeScript(text: string, orderingKey: string | null): Said {
  const read = parseExactJson(text);
  if (!read.ok) return { isJson: read.flaw.reason !== 'syntax', canonical: null, digest: null };
  const { value } = read;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const request = value as Readonly<Record<string, unknown>>;
  return {
    isJson: true,
    canonical: canonicalJson(value),
    digest: isObject ? requestDigest({ destination: DESTINATION, orderingKey, request }) : null,
  };
}

async function assertAgree(texts: readonly string[], orderingKey: string | null = null): Promise<void> {
  const said = await askDatabase(texts, orderingKey);
  texts.forEach((text, i) => assert.deepEqual(said[i], askTypeScript(text, orderingKey), text.slice(0, 300)));
}

/** Compares many texts per query, so that thousands take a second; shrinks to the one that differs. */
async function assertAlwaysAgree(texts: fc.Arbitrary<string>, numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(
      fc.array(texts, { minLength: 1, maxLength: 100, size: 'max' }),
      fc.option(fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\0'))),
      assertAgree,
    ),
    { numRuns },
  );
}

const only = async (text: string): Promise<string | null> =>
  (await askDatabase([text], null))[0]?.canonical ?? null;

test('the examples of RFC 8785 have the documented output', async () => {
  assert.equal(await only(rfcSample.text), rfcSample.canonical);
  const ordered = (await only(rfcOrder.text))?.matchAll(/:"([^"]+)"/g) ?? [];
  assert.deepEqual(
    Array.from(ordered, ([, value]) => value),
    rfcOrder.values,
  );
  const written = rfcNumbers.map(([, text]) => text);
  assert.equal(await only(`[${written.join(',')}]`), `[${written.join(',')}]`);
});

test('they agree on numbers in every notation', () => assertAlwaysAgree(numberTexts, 150));

test('they agree on numbers among others', () =>
  assertAlwaysAgree(
    fc
      .array(numberTexts, { minLength: 1, maxLength: 3 })
      .map((all) => `{"a":[${all.join(', ')}],"b":${all[0]}}`),
    50,
  ));

test('they agree on whole texts', () => assertAlwaysAgree(jsonTexts, 100));

test('they agree on invalid and barely valid JSON', () => assertAlwaysAgree(brokenTexts, 60));

test('they agree on serialised values', () =>
  assertAlwaysAgree(
    fc.jsonValue({ stringUnit: 'binary' }).map((value) => JSON.stringify(value).toWellFormed()),
    60,
  ));

test('they agree on requests with a trace id or key in them', () => {
  const key = fc.constantFrom(
    'trace_id',
    'idempotency_key',
    String.raw`trace\u005fid`,
    'a',
    'zz',
    'trace_id2',
  );
  const value = fc.oneof(jsonTexts, fc.constantFrom('1e400', '12345678901234567890', '{"trace_id":1}'));
  const member = fc.tuple(key, value).map(([name, text]) => `"${name}":${text}`);
  return assertAlwaysAgree(
    fc.uniqueArray(member, { maxLength: 5 }).map((members) => `{${members.join(',')}}`),
    60,
  );
});

test('they agree on every reason to refuse', async () => {
  const refused = [
    '{"a":1,"a":1}',
    String.raw`{"a":1,"\u0061":2}`,
    '{"x":[{"a":1,"b":2,"a":3}]}',
    '{"__proto__":1}',
    String.raw`{"a":{"\u005f_proto__":1}}`,
    '{"a":1e400}',
    '{"a":[12345678901234567890]}',
    '{"a":1e-400000}',
    '{"trace_id":1e400}',
    '{"trace_id":"a","trace_id":"b"}',
    String.raw`{"a":"\u0000"}`,
    String.raw`{"\u0000":1}`,
    String.raw`{"a":"\ud800"}`,
    String.raw`{"a":"\udc00\ud800"}`,
    String.raw`{"a":"\ud800\u0041"}`,
    String.raw`{"\udfff":1}`,
  ];
  await assertAgree(refused);
  for (const { canonical, digest } of await askDatabase(refused, null))
    assert.deepEqual([canonical, digest], [null, null]);
});

test('they agree at the depth limit and far beyond it', async () => {
  const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const members = (levels: number): string => `${'{"b":2,"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const texts = [511, 512, 513].flatMap((levels) => [nested(levels), members(levels)]);
  await assertAgree(texts);
  assert.deepEqual(
    (await askDatabase(texts, null)).map(({ canonical }) => canonical !== null),
    [true, true, true, true, false, false],
  );
  // With less stack PostgreSQL could not parse this JSON.
  await session.query(`SET max_stack_depth = '2MB'`);
  await assertAgree([nested(20_000), `{"a":${nested(5000)}}`]);
  await session.query(`SET max_stack_depth = '200kB'`);
});

const filled = (item: string): string =>
  `[${Array.from({ length: 500_000 / item.length }, () => item).join(',')}]`;

test('they agree on large texts, in a bounded time', async () => {
  const texts = [
    JSON.stringify({ text: 'x'.repeat(1_000_000) }),
    JSON.stringify({ text: '"\\'.repeat(250_000) }),
    `${'{"b":0,"a":'.repeat(512)}"${'€'.repeat(300_000)}"${'}'.repeat(512)}`,
    `[${'[{"z":1},'.repeat(255)}${filled('0')}${']'.repeat(255)}]`,
    `{${Array.from({ length: 20_000 }, (_, i) => `"\u{1f600}\uffee${20_000 - i}":1`).join(',')}}`,
    ...[
      '0',
      '-0',
      '1e1',
      '""',
      String.raw`"\n"`,
      '{}',
      '[[]]',
      '{"b":1,"a":[1.5]}',
      '0.30000000000000004',
    ].map(filled),
    `1${'0'.repeat(300_000)}e-300000`,
    `0.${'0'.repeat(300_000)}10e300000`,
    '9'.repeat(500_000),
    `${' '.repeat(500_000)}{}`,
  ];
  const begin = performance.now();
  for (const text of texts) await assertAgree([text]);
  assert.ok(performance.now() - begin < 60_000);
});
