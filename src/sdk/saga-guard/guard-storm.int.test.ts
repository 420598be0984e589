import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PoolClient } from 'pg';
import * as fc from 'fast-check';
import { newStep, openGuardScene, type GuardScene } from '../../../tests/support/guarded-steps.ts';
import { sleep } from '../../kernel/clock.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { refuse } from './guard-reply.ts';
import type { Guarded } from './guarded-action.ts';
import type { SagaGuard } from './saga-guard.ts';

let scene: GuardScene;
before(async () => void (scene = await openGuardScene()));
after(() => scene.close());

/** How a handler ends, and how long it holds its row; the next handler takes the next one. */
type Handling = Readonly<{ ends: 'done' | 'refused' | 'broken'; ms: number }>;

const handling: fc.Arbitrary<Handling> = fc.record({
  ends: fc.constantFrom('done', 'done', 'refused', 'broken'),
  ms: fc.integer({ min: 0, max: 6 }),
});

type Storm = Readonly<{
  calls: readonly Readonly<{ op: 'action' | 'long' | 'undo'; afterMs: number; key: string }>[];
  handlings: readonly Handling[];
  leaseEndsAfterMs: readonly number[];
}>;

const storm: fc.Arbitrary<Storm> = fc.record({
  calls: fc.array(
    fc.record({
      op: fc.constantFrom('action', 'action', 'long', 'undo', 'undo'),
      afterMs: fc.integer({ min: 0, max: 25 }),
      key: fc.constantFrom('a', 'b'),
    }),
    { minLength: 2, maxLength: 12 },
  ),
  handlings: fc.array(handling, { minLength: 1, maxLength: 8 }),
  leaseEndsAfterMs: fc.array(fc.integer({ min: 0, max: 25 }), { maxLength: 3 }),
});

async function endLease(sagaId: string): Promise<void> {
  await scene.database.db.query(sql`
    UPDATE public.redrive_saga_steps SET lease_until = now() - interval '1 s'
    WHERE saga_id = ${sagaId} AND phase = 'working'`);
}

function participant(
  guard: SagaGuard<PoolClient>,
  handlings: readonly Handling[],
): Readonly<Record<'action' | 'long' | 'undo', Guarded>> {
  let next = 0;
  const handle = async (): Promise<string> => {
    const { ends, ms } = handlings[next++ % handlings.length] as Handling;
    await sleep(ms);
    if (ends === 'broken') throw new Error('broken');
    if (ends === 'refused') throw refuse();
    return 'done';
  };
  return {
    action: guard.action(async (tx, { sagaId }) => {
      await scene.effect(tx, sagaId, 'action');
      return handle();
    }),
    long: guard.longAction({
      work: handle,
      effect: async (tx, made, { sagaId }) => {
        await scene.effect(tx, sagaId, 'action');
        return made;
      },
    }),
    undo: guard.undo(async (tx, { sagaId }) => {
      await scene.effect(tx, sagaId, 'undo');
      return handle();
    }),
  };
}

/** Calls of one step that overlap, with leases that run out in between; then the undo, until it is certain. */
async function rage({ calls, handlings, leaseEndsAfterMs }: Storm): Promise<void> {
  const step = newStep();
  const guard = scene.openGuard({}, { pool: scene.pool });
  const guarded = participant(guard, handlings);
  const statuses = new Set<number>();
  await Promise.all([
    ...calls.map(async ({ op, afterMs, key }) => {
      await sleep(afterMs);
      const more = { 'idempotency-key': key };
      statuses.add((await guarded[op](op === 'undo' ? step.undo(more) : step.action({}, more))).status);
    }),
    ...leaseEndsAfterMs.map(async (ms) => {
      await sleep(ms);
      await endLease(step.sagaId);
    }),
  ]);
  const before = await scene.effectsOf(step.sagaId);
  assert.ok(['', 'action', 'action,undo'].includes(before.join()), before.join());
  for (const status of statuses) assert.ok([200, 202, 204, 409, 500].includes(status), String(status));

  const undo = scene.guard.undo((tx, { sagaId }) => scene.effect(tx, sagaId, 'undo'));
  for (let status = 202; status === 202;) {
    await endLease(step.sagaId);
    ({ status } = await undo(step.undo()));
    if (status !== 202) assert.ok(status === 200 || status === 204, String(status));
  }
  const late = await guarded.action(step.action({}));
  assert.equal(late.status, 409);
  // Long actions that were overtaken come to their end now; it changes nothing.
  await guard.stop();
  const effects = await scene.effectsOf(step.sagaId);
  assert.ok(['', 'action,undo'].includes(effects.join()), effects.join());
}

test('however calls overlap, each effect comes once at most, and none of them is left after an undo', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(storm, { minLength: 4, maxLength: 4 }), async (storms) => {
      await Promise.all(storms.map(rage));
    }),
    { numRuns: 40, endOnFailure: true },
  );
});
