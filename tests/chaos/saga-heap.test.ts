import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { sql, type Sql } from '../../src/platform/postgres/sql.ts';
import { openSagaScene, shopStep, tagsFrom, workflowOf, type SagaScene } from './support/saga-scene.ts';
import { until } from './support/until.ts';

const smallHeap = { NODE_OPTIONS: '--max-old-space-size=256' } as const;

async function scene(t: TestContext): Promise<SagaScene> {
  const at = await openSagaScene();
  t.after(() => at.close());
  return at;
}

/** The first step is sent the whole payload, the other one a word of it. */
const order = workflowOf(
  'order',
  shopStep('reserve'),
  shopStep('charge', { input: { tag: '${input.tag}' } }),
);

/** A saga for each tag, with the JSON that a piece of SQL makes beside it in its payload; their ids. */
async function beginLarge(at: SagaScene, tags: readonly string[], ballast: Sql): Promise<readonly string[]> {
  await at.register(order);
  // Also larger ones than are accepted: an earlier version has let them in.
  await at.db.query(sql`ALTER TABLE saga.saga_states DISABLE TRIGGER saga_states_bound_payload`);
  const rows = await at.db.query<{ saga_id: string }>(sql`
    WITH large AS MATERIALIZED (SELECT ${ballast} AS ballast)
    SELECT started.saga_id
    FROM large CROSS JOIN unnest(${tags}::text[]) AS t (tag)
    CROSS JOIN LATERAL saga.start_saga(
      ${order.name}, jsonb_build_object('tag', t.tag, 'ballast', large.ballast)) AS started`);
  return rows.map(({ saga_id }) => saga_id);
}

/** Almost a megabyte of text, and many times as much as objects. */
const manyObjects = sql`(SELECT jsonb_agg(jsonb_build_object('n', n)) FROM generate_series(1, 65000) AS n)`;
const oneText = sql`repeat('ballast!', 19000000)`;

describe('A process with little memory', { concurrency: false }, () => {
  it('runs two hundred sagas of almost a megabyte each to their ends', async (t) => {
    const at = await scene(t);
    await beginLarge(at, tagsFrom('large', 200), manyObjects);
    const replica = await at.start({ faults: [] }, smallHeap);
    await at.atRest(120_000);
    const sagas = await at.all();
    assert.deepEqual(
      sagas.filter(({ status }) => status !== 'COMPLETED'),
      [],
    );
    assert.equal(sagas.length, 200);
    assert.equal(await replica.terminate(), 0, 'it has lived through it');
  });

  it('is taken down by a saga that is too large for it, which ends with a person and costs no other', async (t) => {
    const at = await scene(t);
    await at.begin(order, tagsFrom('neighbour', 100));
    const [killer = ''] = await beginLarge(at, ['killer'], oneText);
    await at.begin(order, tagsFrom('later', 20));
    let replica = await at.start({ faults: [] }, smallHeap);
    let deaths = 0;
    await until(
      'a person is asked about the killer',
      async () => {
        if ((await at.find(killer)).needsAttention) return true;
        if ((await replica.get('/metrics')) !== null) return null;
        await replica.kill();
        deaths += 1;
        replica = await at.start({ faults: [] }, smallHeap);
        return null;
      },
      { withinMs: 150_000, explain: () => `${deaths} deaths\n${replica.log()}` },
    );
    assert.equal(deaths, 5);
    await at.atRest();
    const others = (await at.all()).filter(({ id }) => id !== killer);
    assert.deepEqual(
      others.filter(({ status }) => status !== 'COMPLETED'),
      [],
    );
    assert.equal(await replica.terminate(), 0);
  });
});
