import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseOrderId } from './order-requests.ts';

test('every id of PostgreSQL is parsed exactly', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 9_223_372_036_854_775_807n }), (id) =>
      assert.equal(parseOrderId(String(id)), id),
    ),
  );
});

test('everything else is refused and names the field', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }).filter((text) => !/^[1-9]\d*$/.test(text)),
    fc.bigInt({ min: 9_223_372_036_854_775_808n }).map(String),
    fc.constantFrom('', '0', '-1', '01', '1.0', '1e3', '0x1', '1n', ' 1', '1 ', '１'),
  );
  fc.assert(
    fc.property(texts, (text) => {
      assert.throws(
        () => parseOrderId(text),
        (error: { code?: string; details?: readonly { field: string }[]; message: string }) => {
          assert.equal(error.code, 'SYS_OUTBOX_VALIDATION_ERROR');
          assert.equal(error.details?.[0]?.field, 'id');
          return error.message.isWellFormed() && error.message.length < 130;
        },
      );
    }),
  );
});
