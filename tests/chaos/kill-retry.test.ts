import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { FaultPlan } from './support/faults.ts';
import { checkLedger, doubled, inFlight, rowsOf, untilReaped, type InFlight } from './support/ledger.ts';
import { retryAll, retryOne } from './support/retry.ts';
import { idsFrom, openScene, type Scene } from './support/scene.ts';

/** How many messages a retry-all claims at once. */
const claimBatch = 1000;

/** Enough for a slow machine: what is claimed ahead is not given back because its lease is nearly over. */
const patient = { DLQ_RETRY_LEASE: '30s' } as const;

async function scene(t: TestContext, count: number): Promise<Scene> {
  const at = await openScene();
  t.after(() => at.close());
  await at.fail(idsFrom('message', count));
  return at;
}

/** Retries a single message in a process that dies on the way. */
async function dieRetrying(at: Scene, plan: FaultPlan): Promise<InFlight> {
  const victim = await at.start(plan);
  await at.taken();
  await untilReaped(at);
  const [row] = await rowsOf(at);
  assert.ok(row);
  assert.equal(await retryOne(row.id, victim), null);
  assert.equal(await victim.died(), 'SIGKILL');
  return inFlight(at);
}

/** Retries the whole topic in a process that dies on the way. */
async function dieRetryingAll(at: Scene, plan: FaultPlan): Promise<InFlight> {
  const victim = await at.start(plan);
  await at.taken();
  assert.equal(await retryAll(at, victim), null);
  assert.equal(await victim.died(), 'SIGKILL');
  return inFlight(at);
}

describe('A process that is killed while it retries', { skip: await whyNoKafka() }, () => {
  it('after the claim has sent nothing: the message costs one attempt and is sent once', async (t) => {
    const at = await scene(t, 1);
    const crash = await dieRetrying(at, { faults: [{ at: 'claimed', act: 'kill' }] });
    assert.equal(crash.length, 1);
    const heir = await at.start();
    await untilReaped(at);
    const [row] = await checkLedger(at, heir, [crash]);
    assert.ok(row?.status === 'PENDING' && row.retryCount === 1);
    assert.equal((await retryOne(row.id, heir))?.status, 200);
    const [resolved] = await checkLedger(at, heir);
    assert.ok(resolved?.status === 'RESOLVED' && resolved.retryCount === 2);
  });

  it('after the broker has answered: the message in flight, and only it, may be sent again', async (t) => {
    const at = await scene(t, 2);
    const crash = await dieRetrying(at, { faults: [{ at: 'published', act: 'kill' }] });
    assert.equal(crash.length, 1);
    const heir = await at.start();
    await untilReaped(at);
    assert.deepEqual(await retryAll(at, heir), { status: 200, retried: 2, failed: 0 });
    const rows = await checkLedger(at, heir, [crash]);
    assert.deepEqual(
      [...(await doubled(at))],
      crash.map(({ name }) => name),
    );
    assert.ok(rows.every(({ status }) => status === 'RESOLVED'));
  });

  it('after the settle is stored: the message is done and is not sent again', async (t) => {
    const at = await scene(t, 1);
    const crash = await dieRetrying(at, { faults: [{ at: 'settled', act: 'kill' }] });
    assert.equal(crash.length, 0);
    const heir = await at.start();
    const [row] = await checkLedger(at, heir);
    assert.equal(row?.status, 'RESOLVED');
    assert.equal((await retryOne(row.id, heir))?.status, 409);
  });

  it('at every attempt leaves a message that is dead, and is sent no more', async (t) => {
    const at = await scene(t, 1);
    const crashes: InFlight[] = [];
    for (let attempt = 1; attempt <= 3; attempt += 1)
      crashes.push(await dieRetrying(at, { faults: [{ at: 'published', act: 'kill' }] }));
    const heir = await at.start();
    await untilReaped(at);
    const [row] = await checkLedger(at, heir, crashes);
    assert.ok(row?.status === 'DEAD' && row.retryCount === 3 && row.attemptNo === 3);
    assert.equal((await retryOne(row.id, heir))?.status, 409);
  });

  for (const point of ['claimed', 'published'] as const)
    it(`in the middle of a retry-all, ${point}, puts at most one claim's messages in doubt`, async (t) => {
      const at = await scene(t, 3500);
      const crash = await dieRetryingAll(at, { faults: [{ at: point, act: 'kill', nth: 3 }] });
      assert.ok(crash.length > 0);
      assert.ok(
        crash.length <= 2 * claimBatch,
        `${crash.length} attempts were begun: one batch ahead at most`,
      );
      const done = await at.count('RESOLVED');
      assert.ok(done > 0, 'what was settled before is done');
      const heir = await at.start(undefined, patient);
      await untilReaped(at);
      await checkLedger(at, heir, [crash]);
      assert.deepEqual(await retryAll(at, heir), { status: 200, retried: 3500 - done, failed: 0 });
      const rows = await checkLedger(at, heir, [crash]);
      assert.ok(rows.every(({ status }) => status === 'RESOLVED'));
      const again = await doubled(at);
      assert.ok(again.size <= claimBatch);
      const claims = new Set(crash.filter(({ name }) => again.has(name)).map(({ epoch }) => epoch));
      assert.equal(claims.size, point === 'published' || again.size > 0 ? 1 : 0, 'all of one claim');
    });
});

describe('A retry whose database connection breaks', { skip: await whyNoKafka() }, () => {
  it('after the settle was stored is settled once, and is no stale write', async (t) => {
    const at = await scene(t, 1);
    const replica = await at.start({ faults: [{ at: 'settled', act: 'lose_answer', nth: 1 }] });
    await at.taken();
    const [row] = await rowsOf(at);
    assert.ok(row);
    assert.equal((await retryOne(row.id, replica))?.status, 200);
    const history = await at.db.query<{ event: string }>(sql`
      SELECT event FROM dlq.message_history WHERE message_id = ${row.id} ORDER BY id`);
    assert.deepEqual(
      history.map(({ event }) => event),
      ['retry_started', 'published'],
    );
    assert.equal(await replica.metric('redrive_stale_writes_total'), 0);
    await checkLedger(at, replica);
  });
});

describe('A retry-all', { skip: await whyNoKafka() }, () => {
  it('tries a message at most once per call, also when it fails and is retryable again meanwhile', async (t) => {
    const at = await scene(t, 3);
    const replica = await at.start({
      faults: [{ at: 'claimed', act: 'refuse' }],
      claimsWaitForSettle: true,
    });
    await at.taken();
    assert.deepEqual(await retryAll(at, replica), { status: 200, retried: 0, failed: 3 });
    const rows = await checkLedger(at, replica);
    assert.deepEqual(
      rows.map(({ status, attemptNo }) => [status, attemptNo]),
      rows.map(() => ['PENDING', 1]),
    );
  });
});
