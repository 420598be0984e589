import assert from 'node:assert/strict';
import { test } from 'node:test';
import { traceparentOf } from './traceparent.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const of = (traceparent: string | string[] | undefined) => traceparentOf({ headers: { traceparent } });

test('a valid traceparent is kept', () => {
  assert.equal(of(`00-${traceId}-${spanId}-01`), `00-${traceId}-${spanId}-01`);
  assert.equal(of(`00-${traceId}-${spanId}-00`), `00-${traceId}-${spanId}-00`);
});

test('ignores fields of newer versions', () => {
  assert.equal(
    of(`cc-${traceId}-${spanId}-01-${'what the future brings'.repeat(100)}`),
    `00-${traceId}-${spanId}-01`,
  );
});

test('anything else is null', () => {
  for (const header of [
    undefined,
    '',
    'x',
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `ff-${traceId}-${spanId}-01`,
    [traceId],
  ])
    assert.equal(of(header), null, String(header));
});
