import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { parseWorkflow } from '../saga/domain/workflow/parse-workflow.ts';
import { workflowHash } from '../saga/domain/workflow/workflow-hash.ts';
import { saga } from './saga-builder.ts';
import { required, text, type Ref } from './saga-reference.ts';
import { call, service } from './saga-service.ts';

type Order = Readonly<{
  sku: string;
  qty: number;
  note?: string;
  address: Readonly<{ city: string; zip?: string }>;
  lines: readonly Readonly<{ sku: string }>[];
}>;
type ReserveRequest = Readonly<{ sku: string; qty: number; note?: string }>;
type Reservation = Readonly<{ id: string; tag: string | null }>;

const inventory = service('inventory', {
  reserve: call<ReserveRequest, Reservation>('InventoryService.Reserve'),
  release: call<Readonly<{ reservation_id?: string }>>('InventoryService.Release'),
  strictRelease: call<Readonly<{ reservation_id: string }>>('InventoryService.StrictRelease'),
});
const shipping = service('shipping', {
  dispatch: call<Readonly<{ sku: string }>, Readonly<{ parcel: string }>>('ShippingService.Dispatch'),
  bill: call<Readonly<{ total: number }>>('ShippingService.Bill'),
  anything: call('ShippingService.Anything'),
});
const payment = service('payment', {
  charge: call<Readonly<{ reference: string }>, Readonly<{ id: string }>>('POST /charges'),
  refund: call<Readonly<{ why: string }>>('DELETE /charges/{id}/{part}'),
});

const placeOrder = saga<Order>('place-order', { deadline: '30m' })
  .step('reserve', {
    do: ({ input }) => inventory.reserve({ sku: input.sku, qty: input.qty }),
    undo: ({ own }) => inventory.release({ reservation_id: own.id }),
  })
  .step('charge', {
    do: ({ input, steps }) => payment.charge({ reference: text`${steps.reserve.id} for ${input.sku}` }),
    undo: ({ own }) => payment.refund({ why: 'costs ${5}' }, { id: own.id, part: 'a/b' }),
    timeoutSecs: 2.5,
    retry: { maxAttempts: 5 },
  })
  .pivot('dispatch', { do: () => shipping.dispatch() })
  .step('tell', { do: ({ steps }) => shipping.anything({ parcel: steps.dispatch.parcel, list: [1, null] }) });

const sameInYaml = `
name: place-order
deadline: 1800s
steps:
  - name: reserve
    service: inventory
    method: InventoryService.Reserve
    compensate: InventoryService.Release
    input: {sku: "\${input.sku}", qty: "\${ input.qty }"}
    compensate_input: {reservation_id: "\${own.id}"}
  - name: charge
    service: payment
    method: POST /charges
    timeout_secs: 2.5
    retry: {max_attempts: 5}
    input: {reference: "\${steps.reserve.id} for \${input.sku}"}
    compensate: DELETE /charges/\${own.id}/a%2Fb
    compensate_input: {why: "costs $\${5}"}
  - {name: dispatch, service: shipping, method: ShippingService.Dispatch, pivot: true}
  - name: tell
    service: shipping
    method: ShippingService.Anything
    input: {list: [1, null], parcel: '\${steps["dispatch"].parcel}'}
`;

test('a workflow in TypeScript and the same in YAML are the same data with the same hash', () => {
  const built = placeOrder.build();
  const fromYaml = parseWorkflow(parse(sameInYaml), null);
  const fromText = parseWorkflow(JSON.parse(built.text), null);
  assert(fromYaml.ok && fromText.ok);
  assert.deepEqual(fromText.workflow, fromYaml.workflow);
  assert.equal(built.hash, workflowHash(fromYaml.workflow));
  assert.equal(built.name, 'place-order');
});

test('how long steps are undone, wait and are polled is said in TypeScript as in YAML', () => {
  const built = saga<Order>('pay', { undoFor: '2h', waitForService: '5m' })
    .step('charge', {
      do: () => payment.charge({ reference: 'x' }),
      undo: 'none',
      poll: 'GET /charges/${own.id}',
      undoFor: '3h',
      waitForService: '1m',
      retry: { maxIntervalMs: 60_000 },
    })
    .pivot('dispatch', { do: () => shipping.dispatch() })
    .build();
  const yaml = parseWorkflow(
    parse(`
name: pay
undo_for: 2h
wait_for_service: 5m
steps:
  - name: charge
    service: payment
    method: POST /charges
    poll: "GET /charges/\${own.id}"
    compensate: none
    undo_for: 3h
    wait_for_service: 1m
    retry: {max_interval_ms: 60000}
    input: {reference: x}
  - {name: dispatch, service: shipping, method: ShippingService.Dispatch, pivot: true}
`),
    null,
  );
  assert.ok(yaml.ok, JSON.stringify(yaml));
  assert.equal(built.hash, workflowHash(yaml.workflow));
});

test('a builder can be grown in two ways without one seeing the other', () => {
  const base = saga<Order>('base').step('a', { do: () => shipping.dispatch() });
  const one = base.step('b', { do: () => shipping.dispatch() }).build();
  const two = base.pivot('b', { do: () => shipping.dispatch() }).build();
  assert.notEqual(one.hash, two.hash);
  assert.equal(JSON.parse(base.build().text).steps.length, 1);
});

test('`undo: none` and an undo left out are two things', () => {
  const [none, absent] = (['none', undefined] as const).map((undo) =>
    saga<Order>('x')
      .step('a', { do: () => shipping.dispatch(), ...(undo === undefined ? {} : { undo }) })
      .build(),
  );
  assert.notEqual(none?.hash, absent?.hash);
});

type Input = Ref<Order, 'action'>;

const misuses: readonly (readonly [name: string, use: (input: Input) => unknown, error: RegExp])[] = [
  ['a sum', (input) => Number(input.qty) + 1, /input\.qty is a reference: it has no value yet/],
  ['a comparison', (input) => (input.qty as unknown as number) > 1, /input\.qty is a reference/],
  ['a template literal', (input) => `${input.sku as unknown as string}!`, /input\.sku is a reference/],
  ['a concatenation', (input) => `id-`.concat(input.sku as unknown as string), /input\.sku is a reference/],
  ['a spread', (input) => ({ ...input }), /it cannot be spread or listed/],
  ['iteration', (input) => [...(input.lines as unknown as string[])], /input\.lines is a reference/],
  ['a method', (input) => (input.lines as unknown as string[]).map(String), /lines\.map is a .* called/],
  ['a change', (input) => ((input as unknown as { sku: string }).sku = 'x'), /it cannot be changed/],
  ['`in`', (input) => 'sku' in (input as object), /what it holds is not known yet/],
];

for (const [name, use, error] of misuses)
  test(`${name} of a reference is refused in words`, () => {
    const workflow = saga<Order>('x');
    assert.throws(
      () =>
        workflow.step('a', {
          do: ({ input }) => {
            use(input);
            return shipping.anything();
          },
        }),
      (thrown) => thrown instanceof TypeError && error.test(thrown.message),
    );
  });

test('what is neither JSON nor a reference is refused with its place', () => {
  for (const value of [new Date(), 1n, Number.NaN, Symbol('x'), () => 1, new Map()])
    assert.throws(
      () => saga('x').step('a', { do: () => shipping.anything({ deep: [value as never] }) }),
      /step a: do: the request\.deep\.0 is neither JSON nor a reference/,
    );
  const circle: Record<string, never> = {};
  circle['self'] = circle as never;
  assert.throws(() => saga('x').step('a', { do: () => shipping.anything(circle) }), /nested too deeply/);
});

test('a reference that another callback got is refused', () => {
  let kept: unknown;
  const first = saga<Order>('x').step('a', {
    do: () => shipping.anything(),
    undo: ({ own }) => {
      kept = own;
      return shipping.anything();
    },
  });
  assert.throws(
    () => first.step('b', { do: () => shipping.anything(), undo: () => shipping.anything(kept as never) }),
    /step b: undo: the request is a reference of another callback/,
  );
});

test('a callback that returns no call, or a promise of one, is refused', () => {
  for (const bad of [() => undefined, async () => shipping.anything(), () => ({})])
    assert.throws(
      () => saga('x').step('a', { do: bad as never }),
      /must return a call of a service, at once/,
    );
});

test('an undo of another service is refused', () => {
  assert.throws(
    () => saga<Order>('x').step('a', { do: () => shipping.anything(), undo: () => inventory.release({}) }),
    /undo calls inventory, but a step has one service: shipping/,
  );
});

test('a path gets all of its values and no others', () => {
  const path = (values: Readonly<Record<string, string>>) => () =>
    saga('x').step('a', { do: () => payment.refund({ why: 'x' }, values) });
  assert.throws(path({ id: '1' }), /called without part/);
  assert.throws(path({ id: '1', part: '2', more: '3' }), /has no \{more\}/);
});

test('what only the whole shows is told by build', () => {
  const twice = saga<Order>('x y').step('a', { do: () => shipping.anything() });
  assert.throws(
    () => twice.step('a', { do: () => shipping.anything(), timeoutSecs: -1 }).build(),
    /workflow x y is not valid: name must consist .*; step a: timeout_secs must be .*; step a: name must be unique/,
  );
});

test('text`…` needs text besides its reference', () => {
  assert.throws(
    () => saga<Order>('x').step('a', { do: ({ input }) => shipping.anything(text`${input.sku}`) }),
    /otherwise use the reference itself/,
  );
});

/** Never called: the compiler takes what stands here, and refuses what is marked. */
export function typesHold(): void {
  const start = saga<Order>('x');
  start.step('a', { do: ({ input }) => inventory.reserve({ sku: required(input.lines[0]!.sku), qty: 1 }) });
  start.step('a', { do: ({ input }) => inventory.reserve({ sku: input.address.city, qty: input.qty }) });
  start.step('a', { do: ({ input }) => inventory.reserve(input) });
  // @ts-expect-error a number is no text
  start.step('a', { do: ({ input }) => inventory.reserve({ sku: input.qty, qty: input.qty }) });
  // @ts-expect-error qty is missing
  start.step('a', { do: ({ input }) => inventory.reserve({ sku: input.sku }) });
  // @ts-expect-error there is no such field
  start.step('a', { do: ({ input }) => inventory.reserve({ sku: input.skew, qty: 1 }) });
  // @ts-expect-error in an action a value that may be missing would be a defect, even where the request allows it
  start.step('a', { do: ({ input }) => inventory.reserve({ sku: 'x', qty: 1, note: input.note }) });
  start.step('a', { do: ({ input }) => inventory.reserve({ sku: 'x', qty: 1, note: required(input.note) }) });
  // @ts-expect-error a list may be too short
  start.step('a', { do: ({ input }) => inventory.reserve({ sku: input.lines[0]!.sku, qty: 1 }) });
  // @ts-expect-error an action has no answer of its own
  start.step('a', { do: ({ own }) => shipping.anything(own) });
  start.step('a', {
    do: inventoryReserve,
    // @ts-expect-error the answer may never have come, and this undo cannot do without it
    undo: ({ own }) => inventory.strictRelease({ reservation_id: own.id }),
  });
  start.step('a', { do: inventoryReserve, undo: ({ own }) => inventory.release({ reservation_id: own.id }) });
  start.step('a', {
    do: inventoryReserve,
    undo: ({ input }) => inventory.strictRelease({ reservation_id: input.sku }),
  });
  start.step('a', {
    do: inventoryReserve,
    // @ts-expect-error null is no text
    undo: ({ own }) => inventory.release({ reservation_id: own.tag }),
  });
  // @ts-expect-error the payload is sent, and it has no total
  start.step('a', { do: () => shipping.bill() });
  start.step('a', { do: inventoryReserve }).step('b', {
    // @ts-expect-error there is no step of this name before
    do: ({ steps }) => shipping.anything(steps.c),
  });
  // @ts-expect-error nothing is undone on the pivot
  start.pivot('a', { do: inventoryReserve, undo: 'none' });
  const after = start.pivot('a', { do: inventoryReserve });
  // @ts-expect-error nothing is undone after the pivot
  after.step('b', { do: inventoryReserve, undo: 'none' });
  // @ts-expect-error there is one pivot
  after.pivot('b', { do: inventoryReserve });
}

const inventoryReserve = () => inventory.reserve({ sku: 'x', qty: 1 });
