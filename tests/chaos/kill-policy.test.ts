import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { createApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import type { FaultPoint } from './support/faults.ts';
import { copiesOf } from './support/ledger.ts';
import { idsFrom, openScene } from './support/scene.ts';

const count = 5;

async function killAt(t: TestContext, point: FaultPoint): Promise<void> {
  const at = await openScene();
  t.after(() => at.close());
  const policies = [{ name: 'soon', topics: [at.originalTopic], delay: '1s', rate: 1000 }];
  const env = { DLQ_AUTO_RETRY: JSON.stringify(policies) };
  await at.fail(idsFrom('message', count));
  const victim = await at.start({ faults: [{ at: point, act: 'kill', nth: 1 }] }, env);
  assert.equal(await victim.died(), 'SIGKILL');
  const heir = await at.start(undefined, env);
  const api = createApiClient(heir.url);

  type Policy = Readonly<{ redrive_id: string | null; last_result: string | null }>;
  await eventually(
    async () => {
      const { body } = await api.get<Policy>('/api/v1/dlq/policies/soon');
      assert.equal(body.redrive_id, null);
      assert.equal(await at.count('RESOLVED'), count);
    },
    { withinMs: 60_000 },
  );
  const redrives = await at.db.query<{ selected: number }>(sql`
    SELECT (receipt #>> '{counts,selected}')::int AS selected FROM dlq.redrives WHERE policy = 'soon'`);
  const selected = redrives.reduce((sum, one) => sum + one.selected, 0);
  assert.equal(selected, count, JSON.stringify(redrives));
  assert.ok([...(await copiesOf(at)).values()].every((one) => one === 1));
}

describe(
  'A process that looks after retry policies and is killed',
  {
    skip: await whyNoKafka(),
    concurrency: 2,
  },
  () => {
    it('between making a redrive and noting it leaves one redrive per round', (t) => killAt(t, 'round_made'));
    it('after making a redrive leaves it to the next one', (t) => killAt(t, 'round_noted'));
  },
);
