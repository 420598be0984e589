import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faultOf, type Fault } from './fault-of.ts';

const faults: Readonly<Record<Fault, readonly string[]>> = {
  values: ['22001', '22P05', '23505', '54000', 'XX000', 'XX001', 'P0001'],
  setup: ['28P01', '28000', '3D000', '42501', '42P01', '55006', '57000'],
  outage: ['40001', '53300', '55P03', '57014', '57P01', '57P03', 'ECONNRESET'],
  ours: ['ERR_INVALID_ARG_TYPE'],
};

for (const [fault, codes] of Object.entries(faults))
  test(`the fault is that of ${fault}: ${codes.join(', ')}`, () => {
    for (const code of codes) assert.equal(faultOf(Object.assign(new Error(code), { code })), fault, code);
  });

test('what cannot be put into words is a fault of the values, and what has no code is one of ours', () => {
  assert.equal(faultOf(new RangeError('Invalid string length')), 'values');
  assert.equal(faultOf(new TypeError('x is not a function')), 'ours');
});
