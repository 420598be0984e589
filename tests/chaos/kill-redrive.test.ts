import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { createApiClient } from '../support/api-client.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import {
  commandRedrive,
  endedRedrive,
  itemsOf,
  planRedrive,
  showRedrive,
  type RedriveView,
} from '../support/redrives.ts';
import { startTestConsumer } from '../support/test-consumer.ts';
import type { FaultPlan } from './support/faults.ts';
import { copiesOf, rowsOf } from './support/ledger.ts';
import { idsFrom, openScene, type Scene } from './support/scene.ts';

const count = 2500;

/** A redrive whose process is killed on the way, and another replica that ends it. */
async function runKilled(
  t: TestContext,
  plan: FaultPlan,
): Promise<Readonly<{ at: Scene; url: string; id: string }>> {
  const at = await openScene();
  t.after(() => at.close());
  await at.fail(idsFrom('message', count));
  const victim = await at.start(plan);
  await at.taken();
  const api = createApiClient(victim.url);
  const { id } = await planRedrive(api, { filter: { topic: at.originalTopic } });
  await commandRedrive(api, id, 'start').catch(() => {});
  assert.equal(await victim.died(), 'SIGKILL');
  const heir = await at.start();
  return { at, url: heir.url, id };
}

describe('A redrive whose process is killed', { skip: await whyNoKafka() }, () => {
  for (const point of ['claimed', 'published'] as const)
    it(`in the middle, ${point}, ends with one outcome for every message, and sends none twice`, async (t) => {
      const { at, url, id } = await runKilled(t, { faults: [{ at: point, act: 'kill', nth: 2 }] });
      const api = createApiClient(url);
      const { receipt } = await endedRedrive(api, id);
      assert.ok(receipt);
      const { published = 0, unknown = 0, selected = 0 } = receipt.counts;
      assert.equal(selected, count);
      assert.equal(published + unknown, count);
      assert.ok(unknown <= 1000, `${unknown} in doubt: at most one batch`);

      const copies = await copiesOf(at);
      const records = [...copies.values()].reduce((sum, one) => sum + one, 0);
      assert.ok(published <= records && records <= published + unknown, `${records} records`);
      assert.ok([...copies.values()].every((one) => one === 1));
      const items = new Map((await itemsOf(api, id)).map((item) => [item.message_id, item.outcome]));
      for (const row of await rowsOf(at)) {
        assert.equal(row.attemptNo, 1);
        assert.equal(row.status === 'RESOLVED', items.get(row.id) === 'published');
      }
      assert.equal((await showRedrive(api, id)).counts['in_flight'], 0);
    });

  it('while it watches a stage of its canary, continues with the same stage', async (t) => {
    const at = await openScene();
    t.after(() => at.close());
    await at.fail(idsFrom('message', 20));
    const victim = await at.start();
    await at.taken();
    const api = createApiClient(victim.url);
    const { id } = await planRedrive(api, { canary: { stages: [3, 10], watch_seconds: 600 } });
    await commandRedrive(api, id, 'start');
    const watched = await watchedRedrive(api, id);
    const drawn = await stagesOf(at);
    const epoch = await leaseEpoch(at);
    await victim.kill();

    const heir = createApiClient((await at.start()).url);
    await eventually(async () => assert.ok((await leaseEpoch(at)) > epoch), { withinMs: 30_000 });
    const resumed = await watchedRedrive(heir, id);
    assert.deepEqual(
      [resumed.stage, resumed.watch_until, resumed.counts['published'], await stagesOf(at)],
      [1, watched.watch_until, 3, drawn],
    );
    assert.equal((await copiesOf(at)).size, 3);

    const consumer = startTestConsumer(at.broker, {
      topic: at.originalTopic,
      deadLetterTopic: at.dlqTopic,
      group: `${at.originalTopic}.billing`,
      judge: () => null,
    });
    try {
      await at.db.query(sql`
        UPDATE dlq.redrives
        SET watch_until = clock_timestamp(), options = jsonb_set(options, '{canary,watch_seconds}', '0.2')`);
      const { counts } = await endedRedrive(heir, id);
      assert.equal(counts['quiet'], 20);
      const copies = await copiesOf(at);
      assert.equal(copies.size, 20);
      assert.ok([...copies.values()].every((one) => one === 1));
    } finally {
      await consumer.stop();
    }
  });
});

async function watchedRedrive(api: ReturnType<typeof createApiClient>, id: string): Promise<RedriveView> {
  return eventually(
    async () => {
      const redrive = await showRedrive(api, id);
      assert.ok(redrive.watch_until !== null, JSON.stringify(redrive.counts));
      return redrive;
    },
    { withinMs: 30_000 },
  );
}

async function stagesOf({ db }: Scene): Promise<readonly (number | null)[]> {
  const rows = await db.query<{ stage: number | null }>(sql`
    SELECT stage FROM dlq.redrive_items ORDER BY position`);
  return rows.map(({ stage }) => stage);
}

async function leaseEpoch({ db }: Scene): Promise<bigint> {
  const [row] = await db.query<{ epoch: bigint }>(sql`SELECT lease_epoch AS epoch FROM dlq.redrives`);
  return row?.epoch ?? 0n;
}
