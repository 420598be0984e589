import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { securityHeaders } from '../../src/platform/http/guards/security-headers.ts';
import { assertError, type Answer, type ApiClient, type RawRequest } from '../support/api-client.ts';
import { everyRole, startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';
import { hostileBodies, hostileSegments } from '../support/hostile-input.ts';
import { assertDocumented, operations, type Parameter, type Placed } from '../support/openapi-document.ts';
import { arbitraryOf, broken, hostileValues } from '../support/schema-arbitrary.ts';
import { storeMessage } from '../support/stored-message.ts';

/**
 * Sends requests made from the API description, valid and broken, as every role and as nobody. No answer is a 5xx or
 * without its headers, and each has a documented status and body. FUZZ_SEED repeats a run. FUZZ_SECONDS=600 makes a long
 * one, which also fails for an answer that is not documented; the short one only reports it, so that it never depends on
 * chance whether a change of the API passes.
 */
const seed = Number(process.env['FUZZ_SEED'] ?? randomInt(2 ** 31));
const isLong = process.env['FUZZ_SECONDS'] !== undefined;
const seconds = Number(process.env['FUZZ_SECONDS'] ?? 15);
const mostRuns = 1_000_000;
const nobody = 'nobody';
const callers = [...everyRole, 'narrow_sys_operator', 'narrow_worker', nobody] as const;
/** Most requests get past the permission. */
const oneCaller = fc.oneof(fc.constantFrom(...callers), fc.constant('sys_admin' as const));

/** Others test the events of a redrive, which end only with it. */
const fuzzed = operations.filter(({ operation }) => operation.operationId !== 'followRedrive');

let guarded: GuardedSystem;
const tokens = new Map<string, string>();
const pools = new Map<string, readonly string[]>();

before(async () => {
  guarded = await startGuardedSystem({
    kafka: 'local',
    more: {
      roles: ['api'],
      outbox: {
        destinations: {
          'in-shop': {
            type: 'http',
            url: 'http://127.0.0.1:9/orders',
            idempotency: 'enforced',
            dedup_window: '24h',
          },
        },
      },
      services: { inventory: { type: 'http', base_url: 'http://127.0.0.1:9' } },
      dlq: { auto_retry: [{ name: 'patient', topics: ['in.*'], delay: '1h' }] },
    },
  });
  for (const role of callers) if (role !== nobody) tokens.set(role, await guarded.tokenOf([role]));
  await storeItems(guarded.withToken(tokens.get('sys_admin') ?? ''));
});
after(() => guarded.drop());

/** Some of everything, in scope of the narrowed roles and out of it. */
async function storeItems(admin: ApiClient): Promise<void> {
  const add = async (path: string, body: object, field: string, key?: string): Promise<string> => {
    const headers = key === undefined ? {} : { 'idempotency-key': key };
    const answer = await admin.post<Readonly<Record<string, unknown>>>(`/api/v1${path}`, body, headers);
    assert.ok(answer.status < 300, `${path}: ${answer.text}`);
    return String(answer.body[field]);
  };
  const workflow = operations.find(({ operation }) => operation.operationId === 'registerWorkflow');
  const example = workflow?.operation.requestBody?.content['application/json']?.example;
  await add('/workflows', example as object, 'name');
  const messages: string[] = [];
  for (const topic of ['in.orders', 'orders.v1'])
    for (const status of ['PENDING', 'DEAD', 'RESOLVED'] as const)
      for (let i = 0; i < 5; i += 1) messages.push(await storeMessage(guarded.system.db, { topic, status }));
  const redrives: string[] = [];
  const jobs: string[] = [];
  const orders: string[] = [];
  const sagas: string[] = [];
  for (let i = 0; i < 8; i += 1) {
    const queue = i % 2 === 0 ? 'in-mail' : 'mail';
    jobs.push(await add('/jobs', { queue, payload: { n: i } }, 'job_id'));
    const order = { destination: 'in-shop', idempotency_key: `order-fuzz-${i}`, request: { n: i } };
    orders.push(await add('/outbox/orders', order, 'id', `order-fuzz-${i}`));
    sagas.push(await add('/sagas', { workflow_name: 'buy', payload: { sku: 'shoe' } }, 'saga_id'));
  }
  for (let i = 0; i < 3; i += 1)
    redrives.push(await add('/dlq/redrives', { filter: { topic: 'in.orders' }, reason: 'fuzz' }, 'id'));
  const keys = [await add('/keys', { name: 'fuzz', role: 'sys_operator' }, 'id')];
  for (const [prefix, names] of Object.entries({
    '/api/v1/dlq/messages': messages,
    '/api/v1/dlq/redrives': redrives,
    '/api/v1/dlq/policies': ['patient'],
    '/api/v1/dlq': ['in.orders', 'orders.v1'],
    '/api/v1/jobs/queues': ['in-mail', 'mail'],
    '/api/v1/jobs': jobs,
    '/api/v1/outbox/ledger': ['order-fuzz-1'],
    '/api/v1/outbox': orders,
    '/api/v1/sagas': sagas,
    '/api/v1/workflows': ['buy'],
    '/api/v1/keys': keys,
  }))
    pools.set(prefix, names);
}

test('no request gets a 5xx, and every answer is documented', async (t) => {
  t.diagnostic(`FUZZ_SEED=${seed}`);
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...fuzzed).chain(callsOf), oneCaller, async (call, caller) => {
      const answer = await guarded.system.api.raw(asCaller(call.request, caller));
      const about = `${caller} ${call.placed.operation.operationId}`;
      assert.ok(answer.status < 500, `${about}: ${answer.status} ${answer.text}`);
      assertProtected(answer, about);
      noteUndocumented(call.placed, answer, about);
      if (answer.status >= 400) assertError(answer, answer.status);
      // A path that is not percent-encoded UTF-8 has no route.
      if (caller === nobody && call.placed.path.startsWith('/api/'))
        assert.ok([400, 401, 431].includes(answer.status), `${about}: ${answer.status}`);
      const kind = `${caller === nobody ? nobody : 'role'} ${answer.status}`;
      seen.set(kind, (seen.get(kind) ?? 0) + 1);
    }),
    { seed, numRuns: mostRuns, interruptAfterTimeLimit: seconds * 1000, endOnFailure: true },
  );
  t.diagnostic(JSON.stringify(Object.fromEntries(seen)));
  for (const message of undocumented.values()) t.diagnostic(`not documented: ${message.slice(0, 500)}`);
  if (isLong) assert.deepEqual([...undocumented.keys()], []);
  for (const status of [200, 400, 403, 404])
    assert.ok((seen.get(`role ${status}`) ?? 0) > 0, `nothing got ${status}`);
});

/** One answer for each kind of deviation. */
const undocumented = new Map<string, string>();

function noteUndocumented(placed: Placed, answer: Answer, about: string): void {
  // Of the whole head; every operation can get it.
  if (answer.status === 431) return;
  try {
    assertDocumented(placed, answer.status, answer.body, about);
  } catch (error) {
    assert.ok(error instanceof assert.AssertionError);
    undocumented.set(`${placed.operation.operationId} ${answer.status}`, error.message);
  }
}

function assertProtected({ headers }: Answer, about: string): void {
  for (const name of ['x-content-type-options', 'referrer-policy', 'cache-control'] as const)
    assert.equal(headers.get(name), securityHeaders[name], `${about}: ${name}`);
  assert.equal(headers.get('access-control-allow-origin'), null, about);
}

function asCaller(request: RawRequest, caller: string): RawRequest {
  const token = tokens.get(caller);
  if (token === undefined) return request;
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } };
}

type Call = Readonly<{ placed: Placed; request: RawRequest }>;

function callsOf(placed: Placed): fc.Arbitrary<Call> {
  const parameters = placed.operation.parameters ?? [];
  const within = (place: Parameter['in']): readonly Parameter[] =>
    parameters.filter((one) => one.in === place);
  return fc
    .record({
      path: pathOf(placed, within('path')),
      query: fieldsOf(within('query')),
      headers: fieldsOf(within('header')),
      body: bodyOf(placed),
    })
    .map(({ path, query, headers, body }) => ({
      placed,
      request: {
        method: placed.method.toUpperCase(),
        path: query === '' ? path : `${path}?${query}`,
        headers: {
          ...sendable(new URLSearchParams(headers)),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body }),
      },
    }));
}

/** Mostly real items; a segment that would lead to another route is left out. */
function pathOf({ path }: Placed, parameters: readonly Parameter[]): fc.Arbitrary<string> {
  const pool = [...pools].find(([prefix]) => path.startsWith(prefix))?.[1] ?? ['x'];
  const hostile = fc.constantFrom(...hostileSegments.filter((one) => !/^\.*$/.test(one)));
  const choices = parameters.map(({ name, schema }, index) =>
    fc
      .oneof(
        { weight: 6, arbitrary: index === 0 ? fc.constantFrom(...pool) : arbitraryOf(schema).map(String) },
        { weight: 1, arbitrary: arbitraryOf(schema).map(String) },
      )
      .map((value) => encodeURIComponent(value.toWellFormed()))
      .filter((value) => !/^(\.|%2e)*$/i.test(value))
      .chain((value) =>
        fc.oneof({ weight: 9, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: hostile }),
      )
      .map((value) => [`{${name}}`, value] as const),
  );
  return fc
    .tuple(...choices)
    .map((given) => given.reduce((text, [name, value]) => text.replace(name, () => value), path));
}

/** As a query; a list becomes several parameters of its name. */
function fieldsOf(parameters: readonly Parameter[]): fc.Arbitrary<string> {
  const values = parameters.map(({ name, schema, required }) => {
    const value = fc.oneof(
      { weight: 6, arbitrary: arbitraryOf(schema) },
      { weight: 1, arbitrary: hostileValues },
    );
    return fc
      .option(value, { nil: undefined, freq: required === true ? 9 : 1 })
      .map((one) => [one ?? []].flat().map((each) => [name, textOf(each)] as [string, string]));
  });
  return fc.tuple(...values).map((pairs) => new URLSearchParams(pairs.flat()).toString());
}

/** Node refuses to send what no header may hold. */
function sendable(headers: URLSearchParams): Readonly<Record<string, string>> {
  return Object.fromEntries([...headers].map(([name, value]) => [name, value.replaceAll(/[^ -~]/g, '?')]));
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.slice(0, 500);
}

function bodyOf({ operation }: Placed): fc.Arbitrary<string | Buffer | undefined> {
  const schema = operation.requestBody?.content['application/json']?.schema;
  if (schema === undefined) return fc.constant(undefined);
  const example = operation.requestBody?.content['application/json']?.example;
  const valid = fc.oneof(arbitraryOf(schema), fc.constant(example)).map(withoutWaiting);
  return fc.oneof(
    { weight: 6, arbitrary: valid.map((value) => JSON.stringify(value)) },
    { weight: 3, arbitrary: broken(valid).map((value) => JSON.stringify(withoutWaiting(value))) },
    { weight: 1, arbitrary: fc.constantFrom(...hostileBodies.map(({ body }) => body)) },
  );
}

/** A claim that waits for jobs would take the time of hundreds of requests. */
function withoutWaiting(body: unknown): unknown {
  const waits = typeof body === 'object' && body !== null && 'wait_seconds' in body;
  return waits && typeof body.wait_seconds === 'number' && body.wait_seconds > 0
    ? { ...body, wait_seconds: 0 }
    : body;
}
