import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { testAct } from '../../../tests/support/acts.ts';
import { createDenialTally, type Denial } from './denial-tally.ts';

const denial = (caller: string, resource: string): Denial => ({
  act: testAct('jobs:jobs:view', 'SYS_AUTH_PERMISSION_DENIED'),
  caller,
  resource,
});

test('a caller who is refused a million times on one route is one row', () => {
  const tally = createDenialTally(10);
  for (let i = 0; i < 1_000_000; i++) tally.note(denial('user:ada', 'http/GET /a'));
  assert.deepEqual(
    tally.take().map(({ caller, count }) => [caller, count]),
    [['user:ada', 1_000_000]],
  );
  assert.deepEqual(tally.take(), []);
});

test('there are never more rows than one above the limit, and no denial is lost, also after a failed write', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ caller: fc.nat(20), route: fc.nat(5), isWritten: fc.boolean() }), {
        maxLength: 200,
      }),
      (denials) => {
        const tally = createDenialTally(7);
        let written = 0;
        for (const { caller, route, isWritten } of denials) {
          tally.note(denial(`user:${caller}`, `http/GET /${route}`));
          if (isWritten) continue;
          const taken = tally.take();
          assert.ok(taken.length <= 8);
          if (caller % 2 === 0) tally.putBack(taken);
          else written += taken.reduce((sum, { count }) => sum + count, 0);
        }
        const rest = tally.take();
        assert.ok(rest.length <= 8);
        written += rest.reduce((sum, { count }) => sum + count, 0);
        assert.equal(written, denials.length);
      },
    ),
  );
});

test('what the caller chooses is cut before it is kept', () => {
  const tally = createDenialTally(10);
  const { act } = denial('', '');
  const long = 'x'.repeat(100_000);
  tally.note({
    act: { ...act, actor: { ...act.actor, id: long, name: long }, request: { ...act.request, agent: long } },
    caller: long,
    resource: long,
  });
  assert.ok(JSON.stringify(tally.take()).length < 3000);
});
