import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { createSoloGate } from './solo-gate.ts';

test('what runs alone never overlaps anything, and everything runs', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ alone: fc.boolean(), turns: fc.integer({ min: 0, max: 5 }) }), { maxLength: 30 }),
      async (items) => {
        const gate = createSoloGate();
        let running = 0;
        let soloRunning = false;
        let done = 0;
        await Promise.all(
          items.map((item) =>
            gate[item.alone ? 'alone' : 'together'](async () => {
              assert.ok(!soloRunning && (!item.alone || running === 0));
              running += 1;
              soloRunning = item.alone;
              for (let turn = 0; turn < item.turns; turn += 1) await Promise.resolve();
              running -= 1;
              soloRunning = false;
              done += 1;
            }),
          ),
        );
        assert.equal(done, items.length);
      },
    ),
  );
});

test('shared work that comes later does not overtake work that waits to run alone', async () => {
  const gate = createSoloGate();
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const all = [
    gate.together(() => first.promise),
    gate.alone(async () => void order.push('alone')),
    gate.together(async () => void order.push('later')),
  ];
  first.resolve();
  await Promise.all(all);
  assert.deepEqual(order, ['alone', 'later']);
});

test('work that fails opens the gate again', async () => {
  const gate = createSoloGate();
  await assert.rejects(gate.alone(() => Promise.reject(new Error('no'))));
  assert.equal(await gate.together(async () => 'in'), 'in');
});
