import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { startKafka, type RunningKafka } from '../../tools/kafka/start-kafka.ts';
import { createApiClient } from '../support/api-client.ts';
import { readAll } from '../support/broker-conformance.ts';
import { commandRedrive, endedRedrive, planRedrive, redriveInState } from '../support/redrives.ts';
import { checkProof, runDisturbed, storeLetters, type ProofOptions } from './support/redrive-proof.ts';
import { retryAll } from './support/retry.ts';
import { openScene } from './support/scene.ts';

/** The same with a hundred thousand messages: tests/soak/redrive-hundred-thousand.ts. */
const options: ProofOptions = { count: 2000, keys: 97, perSecond: 500, withinMs: 60_000 };

describe('A redrive of two thousand messages', { skip: await whyNoKafka() }, () => {
  let kafka: RunningKafka;
  before(async () => void (kafka = await startKafka()));
  after(() => kafka.stop());

  it('sends each once and in order, through a killed process, a restarted broker and a pause', async (t) => {
    const at = await openScene({ partitions: 3, brokers: kafka.brokers });
    t.after(() => at.close());
    await storeLetters(at, options);
    const proof = await runDisturbed(at, kafka, options);
    await checkProof(at, proof, options.count);
    const { skipped = 0, published = 0 } = proof.redrive.receipt?.counts ?? {};
    assert.ok(published + skipped > 0);
  });
});

describe('Two redrives and a retry-all over the same messages', { skip: await whyNoKafka() }, () => {
  it('in two processes publish each message once, with another redrive for what they leave to each other', async (t) => {
    const at = await openScene({ partitions: 3 });
    t.after(() => at.close());
    await storeLetters(at, options);
    // Enough for what is claimed ahead on a slow machine.
    const env = { DLQ_RETRY_LEASE: '30s' };
    const [one, two] = [await at.start(undefined, env), await at.start(undefined, env)];
    const api = createApiClient(one.url);
    const first = await planRedrive(api, { filter: { topic: at.originalTopic } });
    const second = await planRedrive(createApiClient(two.url), { filter: { status: ['PENDING'] } });
    await Promise.all([
      commandRedrive(api, first.id, 'start'),
      commandRedrive(api, second.id, 'start'),
      retryAll(at, two),
    ]);
    for (const { id } of [first, second]) await endedRedrive(api, id);
    // What one of them has in flight holds back the rest of its key in the others; they skip it, and it stays PENDING.
    const [left] = await at.db.query<{ count: number }>(sql`
      SELECT count(*)::int AS count FROM dlq.dlq_messages WHERE status = 'PENDING'`);
    if ((left?.count ?? 0) > 0) {
      const { id } = await planRedrive(api, { filter: { topic: at.originalTopic } });
      await commandRedrive(api, id, 'start');
      await endedRedrive(api, id);
    }
    const records = await readAll(at.broker, at.originalTopic);
    const ids = records.map(({ headers }) =>
      String(headers.find(({ key }) => String(key) === 'redrive-message-id')?.value),
    );
    assert.equal(ids.length, options.count);
    assert.equal(new Set(ids).size, options.count);
    const attempts = await at.db.query(sql`
      SELECT DISTINCT status, attempt_no FROM dlq.dlq_messages`);
    assert.deepEqual(attempts, [{ status: 'RESOLVED', attempt_no: 1 }]);
  });
});

describe('A planner that is killed', { skip: await whyNoKafka() }, () => {
  it('leaves a plan that another process makes from the beginning', async (t) => {
    const at = await openScene();
    t.after(() => at.close());
    const count = 10_500;
    await storeLetters(at, { ...options, count });
    const victim = await at.start({ faults: [{ at: 'planning', act: 'kill', nth: 2 }] });
    const body = { filter: { topic: at.originalTopic }, reason: 'the consumer was fixed' };
    const created = await victim.post('/api/v1/dlq/redrives', body);
    assert.ok(created);
    const { id } = created.body as { id: string };
    assert.equal(await victim.died(), 'SIGKILL');
    const [left] = await at.db.query(sql`SELECT count(*)::int AS count FROM dlq.redrive_items`);
    assert.deepEqual(left, { count: 10_000 });

    const heir = await at.start();
    const { counts } = await redriveInState(createApiClient(heir.url), id, 'planned');
    assert.deepEqual([counts['selected'], counts['waiting']], [count, count]);
  });
});
