import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as fc from 'fast-check';
import { parseExactJson } from '../../src/kernel/exact-json.ts';
import { codeOf } from '../../src/kernel/errors.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { jsonTexts, numberTexts } from '../support/json-texts.ts';
import { root, startSagaSystem, step, type SagaSystem } from '../support/saga-system.ts';

/** A saga that is begun in SQL is begun like one over the API, and refused like one. */

let at: SagaSystem;
let name: string;
before(async () => {
  at = await startSagaSystem({ env: { ROLES: 'api' } });
  name = await at.register([step('a')]);
});
after(() => at.drop());

type Start = Readonly<{
  workflow?: string;
  /** JSON text. */
  payload?: string;
  correlationId?: string;
  initiatedBy?: string;
  key?: string;
  traceparent?: string;
}>;
type Kept = Readonly<{ payload: string | null; trace: string | null; digest: string | null }>;
type Verdict = 'refused' | 'unknown_workflow' | 'mismatch' | 'replayed' | Kept;

async function keptOf(sagaId: string): Promise<Kept> {
  const [row] = await at.system.db.query<Kept>(sql`
    SELECT t.payload::text AS payload, t.trace, k.digest
    FROM saga.saga_states t LEFT JOIN saga.saga_start_keys k ON k.saga_id = t.id WHERE t.id = ${sagaId}`);
  return row ?? assert.fail(`no saga ${sagaId}`);
}

async function overApi(start: Start): Promise<Verdict> {
  const fields = [
    ['workflow_name', JSON.stringify(start.workflow ?? name)],
    ['payload', start.payload],
    ['correlation_id', JSON.stringify(start.correlationId)],
    ['initiated_by', JSON.stringify(start.initiatedBy)],
  ].flatMap(([key, text]) => (text === undefined ? [] : [`${JSON.stringify(key)}:${text}`]));
  const answer = await at.system.api.raw({
    method: 'POST',
    path: root,
    headers: {
      'content-type': 'application/json',
      ...(start.key === undefined ? {} : { 'idempotency-key': start.key }),
      ...(start.traceparent === undefined ? {} : { traceparent: start.traceparent }),
    },
    body: `{${fields.join(',')}}`,
  });
  const { saga_id: sagaId } = JSON.parse(answer.text) as { saga_id: string };
  switch (answer.status) {
    case 200:
      return 'replayed';
    case 201:
      return keptOf(sagaId);
    case 400:
      return 'refused';
    case 404:
      return 'unknown_workflow';
    case 422:
      return 'mismatch';
    default:
      return assert.fail(`${answer.status} ${answer.text}`);
  }
}

async function inSql(start: Start): Promise<Verdict> {
  try {
    const [row] = await at.system.db.query<{ saga_id: string; outcome: string }>(sql`
      SELECT saga_id, outcome FROM saga.start_saga(
        ${start.workflow ?? name}, ${start.payload ?? null}::jsonb, ${start.correlationId ?? null},
        ${start.initiatedBy ?? null}, ${start.key ?? null}, ${start.traceparent ?? null})`);
    assert.ok(row !== undefined);
    return row.outcome === 'started' ? await keptOf(row.saga_id) : (row.outcome as Verdict);
  } catch (error) {
    // 22P02 and 22P05 are PostgreSQL's own refusals of what is no JSON, or has NUL or half a character in it.
    assert.match(codeOf(error) ?? '', /^(22023|22P02|22P05)$/, String(error));
    return 'refused';
  }
}

const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const trace = '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331';
const starts: Readonly<Record<string, Start>> = {
  'no payload': {},
  'an empty payload': { payload: '{}' },
  'a payload that is null': { payload: 'null' },
  'a payload that is an array': { payload: '[{}]' },
  'a payload that is a text': { payload: '"x"' },
  'a payload that is a number': { payload: '7' },
  'a payload that is no JSON': { payload: '{' },
  'a payload with 2^53 + 1': { payload: '{"a":[{"n":9007199254740993}]}' },
  'a payload with 2^53': { payload: '{"a":[{"n":9007199254740992}]}' },
  'a payload with a number halfway between two doubles': { payload: '{"n":1e23}' },
  'a payload with the double that is written so': { payload: '{"n":9.999999999999999e22}' },
  'a payload with too many digits': { payload: '{"n":0.1000000000000000055511}' },
  'a payload with a number too large': { payload: '{"n":1e400}' },
  'a payload with a number too small': { payload: '{"n":1e-400}' },
  'a payload with zeros behind the point': { payload: String.raw`{"1.0":["1.50\"2.0\\",-1.50,2.0,0.00]}` },
  'a payload with digits in a text': { payload: '{"n":"9007199254740993"}' },
  'a payload with NUL': { payload: String.raw`{"n":"\u0000"}` },
  'a payload with half a character': { payload: String.raw`{"n":"\ud800"}` },
  'a payload with a prototype': { payload: '{"a":[{"__proto__":{}}]}' },
  'a payload that mentions a prototype': { payload: '{"a":"__proto__"}' },
  'a payload of 511 levels': { payload: nested(511) },
  'a payload of 512 levels': { payload: nested(512) },
  'no such workflow': { workflow: 'nobody' },
  'an empty workflow': { workflow: '' },
  'a workflow name that is too long': { workflow: 'x'.repeat(256) },
  'a workflow name of 255 characters': { workflow: '\u{1F45F}'.repeat(255) },
  'an empty correlation id': { correlationId: '' },
  'a correlation id that is too long': { correlationId: 'x'.repeat(256) },
  'an empty initiator': { initiatedBy: '' },
  'an initiator of 255 characters': { initiatedBy: '\u{1F45F}'.repeat(255) },
  'an initiator that is too long': { initiatedBy: 'x'.repeat(256) },
  'a key with a blank': { key: 'a b' },
  'a key that is too long': { key: 'k'.repeat(256) },
  'a trace': { traceparent: `00-${trace}-01` },
  'a trace with other flags': { traceparent: `00-${trace}-fe` },
  'a trace of a later version': { traceparent: `cc-${trace}-03-what-the-future-will-be-like` },
  'a trace of no version': { traceparent: `ff-${trace}-01` },
  'a trace with something behind it': { traceparent: `00-${trace}-01-x` },
  'a trace of zeros': { traceparent: `00-${'0'.repeat(32)}-b7ad6b7169203331-01` },
  'a trace without a span': { traceparent: `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01` },
  'a trace in capitals': { traceparent: `00-${trace.toUpperCase()}-01` },
  'a trace that is none': { traceparent: 'nonsense' },
};

describe('a start in SQL ends as the same start over the API', () => {
  for (const [what, start] of Object.entries(starts))
    test(what, async () => assert.deepEqual(await inSql(start), await overApi(start)));

  test('whatever the payload is', async () => {
    await fc.assert(
      fc.asyncProperty(jsonTexts, async (text) => {
        // The type jsonb has forgotten keys that were there before, with their numbers.
        const read = parseExactJson(text);
        fc.pre(read.ok || !['duplicate_key', 'inexact_number'].includes(read.flaw.reason));
        const payload = `{"value":${text}}`;
        assert.deepEqual(await inSql({ payload }), await overApi({ payload }));
      }),
      { numRuns: 100 },
    );
  });

  test('a key of the API means the same in SQL, however a number is spelt', async () => {
    const first = { key: 'one', payload: '{"n":1.50,"m":10,"o":1e23}' };
    assert.equal(typeof (await overApi(first)), 'object');
    const again = { key: 'one', payload: '{"o":100000000000000000000000, "m":10.0,"n":1.5}' };
    assert.deepEqual([await inSql(again), await overApi(again)], ['replayed', 'replayed']);
    const other = { ...first, payload: '{"n":1.51}' };
    assert.deepEqual([await inSql(other), await overApi(other)], ['mismatch', 'mismatch']);
  });
});

test('a number is exact in SQL where it is exact to the API', async () => {
  const texts = fc.sample(numberTexts, { numRuns: 5000, seed: 7 });
  const rows = await at.system.db.query<{ text: string; is_exact: boolean | null }>(sql`
    SELECT text, CASE WHEN pg_input_is_valid(text, 'jsonb') THEN saga.is_exact_number(text::jsonb::numeric) END AS is_exact
    FROM unnest(${texts}::text[]) AS texts (text)`);
  assert.equal(rows.length, texts.length);
  const known = rows.filter(({ is_exact }) => is_exact !== null);
  assert.ok(known.length > texts.length / 2, 'most of them are numbers to PostgreSQL');
  const wrong = known.filter(({ text, is_exact }) => parseExactJson(text).ok !== is_exact);
  assert.deepEqual(wrong, []);
});

test('a payload of half a million numbers is looked through in little time', async () => {
  // One of them is long enough to be looked at closely.
  const payload = `{"a":[${'1,'.repeat(500_000)}1234567890.1234567]}`;
  const begin = performance.now();
  const verdict = await inSql({ payload });
  assert.notEqual(verdict, 'refused');
  // Generous: in time that grows with the square of their number it would be a quarter of a minute.
  assert.ok(performance.now() - begin < 5000, `${Math.round(performance.now() - begin)} ms`);
  assert.equal(await inSql({ payload: payload.replace('4567]', '45678901]') }), 'refused');
});

test('the error says what is wrong, and with which part', async () => {
  const messageOf = async (start: ReturnType<typeof sql>): Promise<string> =>
    at.system.db.query(start).then(
      () => assert.fail('it was accepted'),
      (error: unknown) => (error as Error).message,
    );
  assert.match(
    await messageOf(sql`SELECT saga.start_saga(${name}, '{"n":9007199254740993}')`),
    /^saga\.start_saga: payload must only have numbers that a double holds exactly: write others as texts$/,
  );
  assert.match(
    await messageOf(sql`SELECT saga.start_saga(NULL)`),
    /^saga\.start_saga: workflow_name must be/,
  );
});
