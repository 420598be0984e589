import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseWorkflow, type KnownServices } from './parse-workflow.ts';

const services: KnownServices = new Map([
  ['inventory', { type: 'grpc', isIdempotent: true }],
  ['shipping', { type: 'grpc', isIdempotent: true }],
  ['payment', { type: 'http', isIdempotent: false }],
]);

const reserve = { name: 'reserve', service: 'inventory', method: 'InventoryService.Reserve' };
const charge = { name: 'charge', service: 'payment', method: 'POST /charges' };
const dispatch = { name: 'dispatch', service: 'shipping', method: 'a.b.ShippingService.Dispatch' };

const flawsOf = (data: unknown, known: KnownServices | null = services): readonly string[] => {
  const parsed = parseWorkflow(data, known);
  return parsed.ok
    ? []
    : parsed.flaws.map(({ step, field, message }) => `${step ?? '-'} ${field}: ${message}`);
};

const withSteps = (...steps: readonly unknown[]): unknown => ({ name: 'place-order', steps });

test('what is left out has its default', () => {
  const parsed = parseWorkflow(withSteps(reserve), services);
  assert.deepEqual(parsed, {
    ok: true,
    workflow: {
      name: 'place-order',
      deadlineMs: null,
      steps: [
        {
          name: 'reserve',
          service: 'inventory',
          method: 'InventoryService.Reserve',
          undo: { kind: 'absent' },
          isPivot: false,
          timeoutMs: 30_000,
          retry: { maxAttempts: 3, backoff: 'exponential', initialIntervalMs: 1000 },
          input: null,
          undoInput: null,
        },
      ],
    },
  });
});

test('null is as if the key were left out', () => {
  const nulls = {
    ...reserve,
    compensate: null,
    timeout_secs: null,
    retry: null,
    input: null,
    compensate_input: null,
    pivot: null,
  };
  assert.deepEqual(
    parseWorkflow({ name: 'place-order', deadline: null, steps: [nulls] }, services),
    parseWorkflow(withSteps(reserve), services),
  );
});

test('everything that can be said is read', () => {
  const parsed = parseWorkflow(
    {
      name: 'place-order',
      deadline: '1h30m',
      steps: [
        {
          ...reserve,
          compensate: 'InventoryService.Release',
          timeout_secs: 0.25,
          retry: { max_attempts: 1, backoff: 'fixed', initial_interval_ms: 5 },
          input: { sku: '${ input["sku"] }', list: [1, true, null, 'x'] },
          compensate_input: '${own}',
        },
        { ...charge, compensate: 'none' },
        { ...charge, name: 'again', method: 'PUT /charges/${steps.charge.id}', pivot: true },
      ],
    },
    services,
  );
  assert(parsed.ok);
  const [first, second, third] = parsed.workflow.steps;
  assert.equal(parsed.workflow.deadlineMs, 5_400_000);
  assert.deepEqual(first, {
    name: 'reserve',
    service: 'inventory',
    method: 'InventoryService.Reserve',
    undo: { kind: 'call', method: 'InventoryService.Release' },
    isPivot: false,
    timeoutMs: 250,
    retry: { maxAttempts: 1, backoff: 'fixed', initialIntervalMs: 5 },
    input: { sku: '${input.sku}', list: [1, true, null, 'x'] },
    undoInput: '${own}',
  });
  assert.deepEqual(second?.undo, { kind: 'none' });
  assert.deepEqual([third?.method, third?.isPivot], ['PUT /charges/${steps.charge.id}', true]);
});

const undone = { ...reserve, compensate: 'InventoryService.Release' };

const wrong: readonly (readonly [what: string, data: unknown, ...flaws: string[]])[] = [
  [
    'nothing',
    null,
    '- : must be a map of keys, not nothing',
    '- name: must not be empty',
    '- steps: must have at least one step',
  ],
  [
    'a list',
    [],
    '- : must be a map of keys, not a list',
    '- name: must not be empty',
    '- steps: must have at least one step',
  ],
  ['no steps', withSteps(), '- steps: must have at least one step'],
  ['steps that are no list', { name: 'x', steps: { a: 1 } }, '- steps: must be a list of steps, not a map'],
  [
    'too many steps',
    withSteps(...Array.from({ length: 201 }, () => reserve)),
    '- steps: must not have more than 200 steps',
  ],
  [
    'a step that is a word',
    withSteps('x'),
    '#1 : must be a map of keys, not a string',
    '#1 service: must not be empty',
    '#1 method: must not be empty',
    '#1 name: must not be empty',
  ],
  [
    'an empty name',
    { name: '', steps: [{ ...reserve, name: '' }] },
    '- name: must not be empty',
    '#1 name: must not be empty',
  ],
  [
    'a name that is no word',
    { name: 'a b', steps: [{ ...reserve, name: 'a.b' }] },
    '- name: must consist of letters, digits, _, . and -, and begin with a letter or digit',
    'a.b name: must not contain a dot',
  ],
  ['a name twice', withSteps(reserve, charge, reserve), 'reserve name: must be unique'],
  [
    'an unknown service',
    withSteps({ ...reserve, service: 'invetory' }),
    'reserve service: there is no service invetory; did you mean inventory?',
  ],
  [
    'a service like an object has',
    withSteps({ ...reserve, service: 'constructor' }),
    'reserve service: there is no service constructor',
  ],
  [
    'a gRPC method without its service',
    withSteps({ ...reserve, method: 'Reserve' }),
    'reserve method: must be package.Service.Method for a gRPC service',
  ],
  [
    'an HTTP method of a gRPC service',
    withSteps({ ...reserve, method: 'POST /x' }),
    'reserve method: must be package.Service.Method for a gRPC service',
  ],
  [
    'a gRPC method of an HTTP service',
    withSteps({ ...charge, method: 'A.B' }),
    'charge method: must be a verb and a path, such as "POST /reservations" for an HTTP service',
  ],
  [
    'a verb without a body',
    withSteps({ ...charge, method: 'GET /x' }),
    'charge method: must begin with POST, PUT, PATCH, DELETE; these carry the input as body',
  ],
  [
    'a path with a fragment',
    withSteps({ ...charge, method: 'POST /x#y' }),
    'charge method: has a path with characters that must be percent-encoded',
  ],
  [
    'a path with two slashes',
    withSteps({ ...charge, method: 'POST //evil.example/x' }),
    'charge method: has a path that begins with two slashes',
  ],
  [
    'a path that leads up',
    withSteps({ ...charge, method: 'POST /x/%2E./y' }),
    'charge method: has a path with a . or .. segment',
  ],
  [
    'a bad compensate',
    withSteps({ ...reserve, compensate: 'nothing' }),
    'reserve compensate: must be package.Service.Method for a gRPC service',
  ],
  [
    'compensate_input without compensate',
    withSteps({ ...reserve, compensate_input: {} }),
    'reserve compensate_input: is unused: the step has no compensate',
  ],
  [
    'two pivots',
    withSteps({ ...reserve, pivot: true }, { ...charge, pivot: true }),
    'charge pivot: must not be a second pivot after reserve',
  ],
  [
    'compensate on the pivot',
    withSteps({ ...undone, pivot: true }),
    'reserve compensate: must not be set on the pivot, which cannot be undone',
  ],
  [
    'compensate after the pivot',
    withSteps({ ...charge, pivot: true }, undone, { ...dispatch, compensate: 'none' }),
    'reserve compensate: must not come after the pivot charge, after which no step can be undone',
    'dispatch compensate: must not come after the pivot charge, after which no step can be undone',
  ],
  [
    'an unknown key',
    withSteps({ ...reserve, retry: { max_atempts: 1 }, timeoutSecs: 1, zzz: 2 }),
    'reserve timeoutSecs: unknown key; did you mean timeout_secs?',
    'reserve zzz: unknown key',
    'reserve retry.max_atempts: unknown key; did you mean max_attempts?',
  ],
  [
    'an unknown key above',
    { name: 'x', step: [], steps: [reserve] },
    '- step: unknown key; did you mean steps?',
  ],
  [
    'bad numbers',
    withSteps({
      ...reserve,
      timeout_secs: 0,
      retry: { max_attempts: 1.5, initial_interval_ms: '5', backoff: 'exponental' },
    }),
    'reserve timeout_secs: must be a number from 0.001 to 3600',
    'reserve retry.max_attempts: must be a whole number from 1 to 100',
    'reserve retry.backoff: must be one of exponential, fixed; did you mean exponential?',
    'reserve retry.initial_interval_ms: must be a whole number from 1 to 3600000',
  ],
  [
    'a bad deadline',
    { name: 'x', deadline: 30, steps: [reserve] },
    '- deadline: must be a duration from 1ms to 365d, such as 30m or 1h30m',
  ],
  [
    'a deadline of nothing',
    { name: 'x', deadline: '0s', steps: [reserve] },
    '- deadline: must be a duration from 1ms to 365d, such as 30m or 1h30m',
  ],
  [
    'a pivot that is a text',
    withSteps({ ...reserve, pivot: 'yes' }),
    'reserve pivot: must be true or false, not a string',
  ],
  [
    'an unknown root',
    withSteps({ ...reserve, input: { a: [{ b: '${payload.x}' }] } }),
    'reserve input.a.0.b: refers to payload: a path begins with input, steps or own',
  ],
  [
    'own in an action',
    withSteps({ ...reserve, input: '${own.id}' }),
    'reserve input: refers to own, which only compensate and poll can use',
  ],
  [
    'own in the path of an action',
    withSteps({ ...charge, method: 'POST /x/${own.id}' }),
    'charge method: refers to own, which only compensate and poll can use',
  ],
  [
    'its own step',
    withSteps({ ...undone, input: '${steps.reserve.id}', compensate_input: '${steps.reserve}' }),
    'reserve input: refers to its own step, which has no response yet',
    'reserve compensate_input: refers to its own step: write own',
  ],
  [
    'a later step',
    withSteps({ ...undone, input: '${steps.charge.id}', compensate_input: '${steps.charge}' }, charge),
    'reserve input: refers to step charge, which comes later',
    'reserve compensate_input: refers to step charge, which comes later',
  ],
  [
    'an unknown step',
    withSteps(reserve, { ...charge, input: ['${steps.reserv.id}'] }),
    'charge input.0: refers to step reserv, which does not exist; did you mean reserve?',
  ],
  [
    'numbers that JSON does not keep',
    withSteps({ ...charge, input: [Number.NaN, Infinity, 2 ** 53] }),
    ...[0, 1, 2].map(
      (at) => `charge input.${at}: must be a number that a double represents exactly, or a string`,
    ),
  ],
  [
    'what is no message for a gRPC service',
    withSteps({ ...undone, input: ['x'], compensate_input: 'id ${own.id}' }, { ...charge, input: ['x'] }),
    'reserve input: must be a map of the fields of a message, or a reference to one',
    'reserve compensate_input: must be a map of the fields of a message, or a reference to one',
  ],
  [
    'a date',
    withSteps({ ...reserve, input: { at: new Date(0) } }),
    'reserve input.at: must be JSON, not an object of a class',
  ],
  [
    'text that cannot be stored',
    withSteps({ ...reserve, input: 'a\0b' }),
    '- steps.0.input: must not contain NUL or a lone surrogate',
  ],
  [
    'a key that would replace a prototype',
    withSteps(JSON.parse('{"__proto__":{"name":"x"}}')),
    '- steps.0.__proto__: must not be used as a name',
  ],
];

for (const [what, data, ...flaws] of wrong)
  test(`${what} is refused, with the step and why`, () => {
    assert.deepEqual(flawsOf(data), flaws);
  });

for (const [what, change, flaw] of [
  ['a poll of a gRPC step', { poll: 'GET /x' }, 'poll: is for HTTP services'],
  [
    'a poll that changes something',
    { method: 'POST /r', compensate: 'POST /u', poll: 'POST /x' },
    'poll: must begin with GET',
  ],
  [
    'a poll that is no method',
    { method: 'POST /r', compensate: 'POST /u', poll: 7 },
    'poll: must be a string',
  ],
  ['an undo_for that is no duration', { undo_for: 5 }, 'undo_for: must be a duration'],
  ['a wait_for_service of nothing', { wait_for_service: '0s' }, 'wait_for_service: must be a duration'],
  [
    'a max_interval_ms of nothing',
    { retry: { max_interval_ms: 0 } },
    'retry.max_interval_ms: must be a whole number',
  ],
] as const)
  test(`${what} is refused, with the step and why`, () => {
    const step = { name: 'reserve', service: 's', method: 'A.B', compensate: 'A.C', ...change };
    const parsed = parseWorkflow({ name: 'order', steps: [step] }, null);
    assert.ok(!parsed.ok);
    const said = parsed.flaws.map(({ step: at, field, message }) => `${at} ${field}: ${message}`);
    assert.equal(said.length, 1, said.join());
    assert.ok(said[0]?.startsWith(`reserve ${flaw}`), said[0]);
  });

test('without known services the form of a method says of which type it is', () => {
  assert.deepEqual(
    flawsOf(withSteps({ ...reserve, service: 'any' }, { ...charge, service: 'any' }), null),
    [],
  );
  assert.deepEqual(flawsOf(withSteps({ ...charge, compensate: 'A.B' }), null), [
    'charge compensate: must be a verb and a path, such as "POST /reservations" for an HTTP service',
  ]);
});

test('a workflow with a mistake in every line is answered with the first hundred', () => {
  const keys = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`key${at}`, at]));
  assert.equal(flawsOf(withSteps({ ...reserve, ...keys })).length, 100);
});

test('any JSON is either a workflow or says what is wrong', () => {
  const word = fc.constantFrom(
    'name',
    'steps',
    'service',
    'method',
    'input',
    '${own}',
    'none',
    'POST /x',
    'A.B',
  );
  const json = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 5 },
      word,
      fc.jsonValue({ maxDepth: 2 }),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(word, tie('any'), { maxKeys: 6, noNullPrototype: true }),
    ),
  })).any;
  fc.assert(
    fc.property(json, (data) => {
      const parsed = parseWorkflow(data, services);
      assert(parsed.ok || parsed.flaws.length > 0);
    }),
    { numRuns: 500 },
  );
});
