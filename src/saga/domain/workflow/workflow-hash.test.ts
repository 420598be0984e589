import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseWorkflow } from './parse-workflow.ts';
import { fromStored, toStored, workflowHash } from './workflow-hash.ts';
import type { Mapping, Step, Workflow } from './workflow.ts';

const placeOrder = {
  name: 'place-order',
  deadline: '30m',
  steps: [
    {
      name: 'reserve',
      service: 'inventory',
      method: 'InventoryService.Reserve',
      compensate: 'InventoryService.Release',
      input: { sku: '${input.sku}', qty: '${input.qty}' },
      compensate_input: { reservation_id: '${own.id}' },
    },
    { name: 'dispatch', service: 'shipping', method: 'ShippingService.Dispatch', pivot: true },
  ],
};

const parse = (data: unknown): Workflow => {
  const parsed = parseWorkflow(data, null);
  assert(parsed.ok, JSON.stringify(parsed));
  return parsed.workflow;
};

test('the hash of a definition is the same for ever: sagas are pinned to it', () => {
  assert.equal(
    workflowHash(parse(placeOrder)),
    'sha256:c682de650648dcdc4c238ccd20c549db1fce82ff0dee62ffa006e3ff76a479d5',
  );
});

test('a default that is written out changes nothing', () => {
  const [reserve, dispatch] = placeOrder.steps;
  const written = {
    steps: [
      { ...reserve, timeout_secs: 30, retry: { max_attempts: 3 }, pivot: false },
      { ...dispatch, retry: { backoff: 'exponential', initial_interval_ms: 1000 }, input: null },
    ],
    deadline: '1800s',
    name: 'place-order',
  };
  assert.equal(workflowHash(parse(written)), workflowHash(parse(placeOrder)));
});

test('every change of what is done changes the hash', () => {
  const [reserve, dispatch] = placeOrder.steps;
  const changed = [
    { ...placeOrder, name: 'other' },
    { ...placeOrder, deadline: '31m' },
    { ...placeOrder, steps: [reserve] },
    { ...placeOrder, steps: [reserve, { ...dispatch, pivot: false }] },
    ...[
      { name: 'r' },
      { service: 's' },
      { method: 'A.B' },
      { compensate: 'A.B' },
      { compensate: 'none', compensate_input: undefined },
      { compensate: undefined, compensate_input: undefined },
      { timeout_secs: 31 },
      { retry: { max_attempts: 4 } },
      { retry: { backoff: 'fixed' } },
      { retry: { initial_interval_ms: 1 } },
      { input: { sku: '${input.sku}' } },
      { compensate_input: { reservation_id: '${input.id}' } },
      { undo_for: '1h' },
      { wait_for_service: '10m' },
      { retry: { max_interval_ms: 60_000 } },
    ].map((change) => ({
      ...placeOrder,
      steps: [JSON.parse(JSON.stringify({ ...reserve, ...change })) as unknown, dispatch],
    })),
  ];
  const hashes = [placeOrder, ...changed].map((data) => workflowHash(parse(data)));
  assert.equal(new Set(hashes).size, changed.length + 1);
});

const name = fc.stringMatching(/^[a-z][a-z0-9_-]{0,10}$/);
const mapping: fc.Arbitrary<Mapping> = fc.letrec<{ any: Mapping }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<Mapping>('${input.a}', 'x ${input.b.0} y', '$${z}', 1, -2.5, 0, true, null, '', '注'),
    fc.array(tie('any'), { maxLength: 3 }),
    fc.dictionary(name, tie('any'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).any;
const sent = fc.option(
  fc.oneof(
    fc.constant('${input.message}'),
    fc.dictionary(name, mapping, { maxKeys: 3, noNullPrototype: true }),
  ),
);

const step: fc.Arbitrary<Step> = fc
  .record(
    {
      name,
      service: name,
      method: fc.constantFrom('a.B.C', 'A.B'),
      undo: fc.constantFrom<Step['undo']>(
        { kind: 'absent' },
        { kind: 'none' },
        { kind: 'call', method: 'A.Undo' },
      ),
      isPivot: fc.constant(false),
      timeoutMs: fc.integer({ min: 1, max: 3_600_000 }),
      retry: fc.record(
        {
          maxAttempts: fc.integer({ min: 1, max: 100 }),
          backoff: fc.constantFrom('exponential' as const, 'fixed' as const),
          initialIntervalMs: fc.integer({ min: 1, max: 3_600_000 }),
          maxIntervalMs: fc.integer({ min: 1, max: 86_400_000 }),
        },
        { noNullPrototype: true, requiredKeys: ['maxAttempts', 'backoff', 'initialIntervalMs'] },
      ),
      undoForMs: fc.integer({ min: 1, max: 1e6 }),
      waitForServiceMs: fc.integer({ min: 1, max: 1e6 }),
      input: sent,
      undoInput: sent,
    },
    {
      noNullPrototype: true,
      requiredKeys: [
        'name',
        'service',
        'method',
        'undo',
        'isPivot',
        'timeoutMs',
        'retry',
        'input',
        'undoInput',
      ],
    },
  )
  .map((each) => (each.undo.kind === 'call' ? each : { ...each, undoInput: null }));

const workflow: fc.Arbitrary<Workflow> = fc
  .record({
    name,
    deadlineMs: fc.option(fc.integer({ min: 1, max: 1e9 })),
    steps: fc.uniqueArray(step, { minLength: 1, maxLength: 4, selector: (each) => each.name }),
    hasPivot: fc.boolean(),
  })
  .map(({ name, deadlineMs, steps, hasPivot }) => ({
    name,
    deadlineMs,
    steps: steps.map((each, index) =>
      hasPivot && index === steps.length - 1
        ? { ...each, isPivot: true, undo: { kind: 'absent' }, undoInput: null }
        : each,
    ),
  }));

test('a workflow comes back from its stored form, with the same hash', () => {
  fc.assert(
    fc.property(workflow, (each) => {
      const back = fromStored(JSON.parse(JSON.stringify(toStored(each))));
      assert.deepEqual(back, each);
      assert.equal(workflowHash(back), workflowHash(each));
    }),
  );
});

/** As a person would have written it. */
const toFile = ({ name, deadlineMs, steps }: Workflow): unknown => ({
  name,
  deadline: deadlineMs === null ? null : `${deadlineMs}ms`,
  steps: steps.map((each) => ({
    name: each.name,
    service: each.service,
    method: each.method,
    compensate: each.undo.kind === 'call' ? each.undo.method : each.undo.kind === 'none' ? 'none' : null,
    pivot: each.isPivot,
    timeout_secs: each.timeoutMs / 1000,
    retry: {
      max_attempts: each.retry.maxAttempts,
      backoff: each.retry.backoff,
      initial_interval_ms: each.retry.initialIntervalMs,
      max_interval_ms: each.retry.maxIntervalMs ?? null,
    },
    undo_for: each.undoForMs === undefined ? null : `${each.undoForMs}ms`,
    wait_for_service: each.waitForServiceMs === undefined ? null : `${each.waitForServiceMs}ms`,
    input: each.input,
    compensate_input: each.undoInput,
  })),
});

test('a workflow comes back from its file, with the same hash', () => {
  fc.assert(
    fc.property(workflow, (each) => {
      const back = parse(toFile(each));
      assert.deepEqual(back, each);
      assert.equal(workflowHash(back), workflowHash(each));
    }),
  );
});

test('what came later changes no hash where it is not used, and makes the version 2 where it is', () => {
  const [reserve, dispatch] = placeOrder.steps;
  const asDefault = {
    ...placeOrder,
    undo_for: '24h',
    steps: [{ ...reserve, wait_for_service: '1h' }, dispatch],
  };
  assert.equal(workflowHash(parse(asDefault)), workflowHash(parse(placeOrder)));
  assert.equal(toStored(parse(placeOrder)).version, 1);
  const polled = { ...reserve, method: 'POST /r', compensate: 'POST /u', poll: 'GET /r/${own.id}' };
  assert.equal(toStored(parse({ ...placeOrder, steps: [polled] })).version, 2);
  assert.equal(fromStored(toStored(parse({ ...placeOrder, steps: [polled] }))).steps[0]?.poll, polled.poll);
});

test('what the workflow says for all steps is the same as each of them saying it', () => {
  const forAll = { ...placeOrder, undo_for: '2h', wait_for_service: '5m' };
  const each = {
    ...placeOrder,
    steps: placeOrder.steps.map((step) => ({ ...step, undo_for: '120m', wait_for_service: '5m' })),
  };
  assert.equal(workflowHash(parse(forAll)), workflowHash(parse(each)));
  const [reserve, dispatch] = placeOrder.steps;
  const own = parse({ ...forAll, steps: [{ ...reserve, undo_for: '24h' }, dispatch] });
  assert.deepEqual(
    own.steps.map(({ undoForMs }) => undoForMs),
    [undefined, 7_200_000],
    'a step has the last word',
  );
});

test('a stored form of another version is not read', () => {
  const stored = toStored(parse(placeOrder));
  assert.throws(() => fromStored({ ...stored, version: 3 }), /has version 1 or 2, not 3/);
});
