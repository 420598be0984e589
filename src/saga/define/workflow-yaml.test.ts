import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KnownServices } from '../domain/workflow/parse-workflow.ts';
import { workflowHash } from '../domain/workflow/workflow-hash.ts';
import type { Flaw, Workflow } from '../domain/workflow/workflow.ts';
import { MAX_WORKFLOW_BYTES, readWorkflow } from './workflow-yaml.ts';

const services: KnownServices = new Map([
  ['inventory', { type: 'grpc', isIdempotent: true }],
  ['shipping', { type: 'grpc', isIdempotent: true }],
]);

/** As the design paper has it, word for word. */
const placeOrder = `
name: place-order
deadline: 30m
steps:
  - name: reserve
    service: inventory            # from config.services
    method: InventoryService.Reserve      # http: "POST /reservations"
    compensate: InventoryService.Release
    timeout_secs: 30                      # default 30; the undo's too
    retry: {max_attempts: 3, backoff: exponential, initial_interval_ms: 1000}   # defaults
    input: {sku: "\${input.sku}", qty: "\${input.qty}"}          # default: the saga's payload
    compensate_input: {reservation_id: "\${own.id}"}            # default: the saga's payload
  - name: dispatch
    service: shipping
    method: ShippingService.Dispatch
    pivot: true                           # at most one
`;

function read(text: string): Workflow {
  const parsed = readWorkflow(text, services);
  assert(parsed.ok, JSON.stringify(parsed));
  return parsed.workflow;
}

function flawsOf(text: string): readonly Flaw[] {
  const parsed = readWorkflow(text, services);
  return parsed.ok ? [] : parsed.flaws;
}

test('a workflow in YAML is read', () => {
  const { name, deadlineMs, steps } = read(placeOrder);
  assert.deepEqual(
    [name, deadlineMs, steps.map((step) => step.name), steps[0]?.input],
    ['place-order', 1_800_000, ['reserve', 'dispatch'], { sku: '${input.sku}', qty: '${input.qty}' }],
  );
});

test('the same as JSON, with a byte order mark, or with a document marker is the same workflow', () => {
  const json = JSON.stringify({
    name: 'place-order',
    deadline: '30m',
    steps: [
      {
        name: 'reserve',
        service: 'inventory',
        method: 'InventoryService.Reserve',
        compensate: 'InventoryService.Release',
        input: { qty: '${input.qty}', sku: '${input.sku}' },
        compensate_input: { reservation_id: '${own.id}' },
      },
      { name: 'dispatch', service: 'shipping', method: 'ShippingService.Dispatch', pivot: true },
    ],
  });
  for (const text of [
    json,
    `\uFEFF${placeOrder}`,
    `---${placeOrder}...\n`,
    placeOrder.replaceAll('\n', '\r\n'),
  ])
    assert.equal(workflowHash(read(text)), workflowHash(read(placeOrder)));
});

const steps = 'steps: [{name: a, service: inventory, method: A.B';

const wrong: readonly (readonly [what: string, text: string, field: string, message: RegExp])[] = [
  ['an empty text', '', '', /must be a map of keys, not nothing/],
  ['a text without a document', '# nothing\n', '', /must be a map of keys, not nothing/],
  ['two documents', `${placeOrder}---\n${placeOrder}`, 'line 17, column 1', /multiple docs/],
  ['an alias', `name: &n x\n${steps}, input: *n}]`, 'line 2, column 59', /must not be an alias/],
  ['an alias to itself', `&a [*a]`, 'line 1, column 5', /must not be an alias/],
  ['an alias to nothing', `name: *n`, 'line 1, column 7', /./],
  ['a key twice', `name: a\nname: b\n${steps}}]`, 'line 2, column 1', /is a duplicate key/],
  [
    'a key twice in JSON',
    `{"name": "a", ${steps}, input: {"x": 1, 'x': 2}}]}`,
    'line 1, column 82',
    /is a duplicate key/,
  ],
  ['a tag of its own', `name: !env SECRET\n${steps}}]`, 'line 1, column 7', /tag resolve failed/],
  ['a tag of a program', `name: !!js/function 'x'\n${steps}}]`, 'line 1, column 7', /tag resolve failed/],
  ['a binary', `name: !!binary aGk=\n${steps}}]`, 'line 1, column 7', /tag resolve failed/],
  ['a directive that nobody knows', `%FOO x\n---\nname: x`, 'line 1, column 1', /bad directive/],
  ['a key that is a list', `? [a]\n: 1`, 'line 1, column 3', /non string key/],
  ['no YAML', 'name: "x', 'line 1, column 9', /is not valid YAML: missing char$/],
  [
    'a reference without quotes',
    `${steps}, input: {x: \${input.y}}}]`,
    'line 1, column 64',
    /quote references/,
  ],
  ['a merge key', `name: x\n${steps}, <<: {method: C.D}}]`, '<<', /unknown key/],
  [
    'a number that is rounded',
    `name: x\n${steps}, input: [12345678901234567890]}]`,
    'input.0',
    /represents exactly/,
  ],
  ['no number', `name: x\n${steps}, input: .nan}]`, 'input', /represents exactly/],
  ['NUL', `name: "a\\0b"\n${steps}}]`, 'name', /NUL or a lone surrogate/],
  ['a lone surrogate', `name: "\\ud800"\n${steps}}]`, 'name', /NUL or a lone surrogate/],
  ['a prototype', `__proto__: {name: x}\n${steps}}]`, '__proto__', /must not be used as a name/],
  ['depth without end', '['.repeat(9000), '', /nested too deeply/],
  ['much depth', `${'['.repeat(2000)}${']'.repeat(2000)}`, '', /nested/],
  ['too much', 'x'.repeat(MAX_WORKFLOW_BYTES + 1), '', /not be larger than 262144 bytes/],
  ['too much in UTF-8', '注'.repeat(MAX_WORKFLOW_BYTES / 2), '', /not be larger than 262144 bytes/],
];

for (const [what, text, field, message] of wrong)
  test(`${what} is refused`, () => {
    const [flaw] = flawsOf(text);
    assert.match(flaw?.message ?? 'no flaw', message);
    assert.equal(flaw?.field, field);
  });

test('a document that calls itself YAML 1.1 is read as every other', () => {
  const { steps } = read(
    '%YAML 1.1\n---\nname: x\nsteps: [{name: a, service: inventory, method: A.B, input: {x: yes, y: 2001-01-01}}]',
  );
  assert.deepEqual(steps[0]?.input, { x: 'yes', y: '2001-01-01' });
});

test('a text of many keys is answered at once', { timeout: 60_000 }, () => {
  const keys = Array.from({ length: 2000 }, (_, at) => at.toString(36));
  assert.equal(flawsOf(keys.map((key) => `${key}:\n`).join('')).length, 100);
  assert.equal(flawsOf(`{${keys.join(',')}}`).length, 100);
});

test('faults behind the first are told, but not without end', () => {
  assert.equal(flawsOf('- }\n'.repeat(1000)).length, 10);
});

/** Each as long as a workflow may be, and none of what a person writes. */
const odd: readonly string[] = [
  '[',
  '{a: ',
  '- ',
  '? ',
  ': ',
  '&a ',
  '!a ',
  '#\n',
  '\n',
  '"',
  '%\n',
  '*a ',
  ']\n',
  '} ',
  '  a:\n b:\n',
  '-\n',
  'a: 1\n',
].map((piece) => piece.repeat(MAX_WORKFLOW_BYTES / piece.length));

test('what is odd by the hundred thousand is refused before it is parsed', () => {
  for (const text of odd)
    assert.match(flawsOf(text)[0]?.message ?? '', /must not have more than 10000 tokens/, text.slice(0, 10));
});

test('a text that is odd and as long as it may be takes no longer than a few megabytes of JSON', () => {
  const json = JSON.stringify(Array.from({ length: 400_000 }, (_, n) => ({ n })));
  const took = (work: () => unknown): number => {
    const begin = performance.now();
    work();
    return performance.now() - begin;
  };
  const measure = Math.max(
    took(() => JSON.parse(json)),
    took(() => JSON.parse(json)),
    100,
  );
  for (const text of odd) {
    const ms = Math.min(
      took(() => flawsOf(text)),
      took(() => flawsOf(text)),
    );
    assert.ok(ms < 2 * measure, `${text.slice(0, 10)}: ${ms} ms, and the JSON ${measure} ms`);
  }
});

test('a workflow of a thousand lines is read', () => {
  const steps = Array.from(
    { length: 300 },
    (_, n) => `  - name: s${n}\n    service: shop\n    method: POST /s${n}\n`,
  );
  const flaws = flawsOf(`name: long\nsteps:\n${steps.join('')}`);
  assert.ok(
    flaws.every(({ message }) => !message.includes('tokens')),
    JSON.stringify(flaws[0]),
  );
});
