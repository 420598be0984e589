import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { createApiClient } from '../support/api-client.ts';
import { commandRedrive, endedRedrive, itemsOf, planRedrive, showRedrive } from '../support/redrives.ts';
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
});
