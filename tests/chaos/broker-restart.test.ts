import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { startKafka, type RunningKafka } from '../../tools/kafka/start-kafka.ts';
import { checkLedger, rowsOf, type Row } from './support/ledger.ts';
import { untilReadiness } from './support/readiness.ts';
import { retryAll, retryOne } from './support/retry.ts';
import { idsFrom, openScene, type Scene } from './support/scene.ts';
import type { Replica } from './support/start-replica.ts';
import { until } from './support/until.ts';

/** Retries a message while the broker is away: the answer says why, and only doubt costs an attempt. */
async function retryInVain(at: Scene, replica: Replica): Promise<Readonly<{ row: Row; reason: string }>> {
  const row = (await rowsOf(at)).find(({ retryCount }) => retryCount === 0);
  assert.ok(row);
  const answer = await retryOne(row.id, replica);
  assert.equal(answer?.status, 503);
  const { error } = answer.body as { error: { code: string; details: readonly { reason: string }[] } };
  assert.equal(error.code, 'SYS_DLQ_BROKER_UNAVAILABLE');
  const reason = error.details[0]?.reason ?? '';
  const after = (await rowsOf(at)).find(({ id }) => id === row.id);
  assert.ok(after?.status === 'PENDING' && after.retryCount === (reason === 'in_doubt' ? 1 : 0));
  return { row, reason };
}

async function untilDegraded(replica: Replica): Promise<void> {
  const { status, body } = await untilReadiness(replica, 'degraded');
  assert.equal(status, 200);
  assert.equal(body.checks['database']?.status, 'healthy');
  assert.notEqual(body.checks['kafka']?.status, 'healthy');
}

describe('When the broker goes away and comes back', { skip: await whyNoKafka() }, () => {
  let kafka: RunningKafka;
  let at: Scene;
  before(async () => {
    kafka = await startKafka();
    at = await openScene({ brokers: kafka.brokers });
  });
  after(async () => {
    await at.close();
    await kafka.stop();
  });

  it('the process is degraded meanwhile, a retry costs no attempt, and reading goes on by itself', async () => {
    const replica = await at.start(undefined, { KAFKA_DISCOVERY_INTERVAL: '30s' });
    await untilReadiness(replica, 'healthy');
    await at.fail(idsFrom('before', 1000), { padding: 1000 });
    await until('something is stored', async () => (await at.count()) > 0 || null);
    await kafka.kill();
    await untilDegraded(replica);
    assert.equal((await replica.get(`/api/v1/dlq/${at.originalTopic}`))?.status, 200);
    await retryInVain(at, replica);
    assert.equal((await retryAll(at, replica))?.status, 503);
    await kafka.restart();
    await untilReadiness(replica, 'healthy');
    await at.fail(idsFrom('after', 100));
    await at.taken();
    const rows = await checkLedger(at, replica);
    assert.ok(rows.every(({ status }) => status === 'PENDING'));
    assert.equal(await replica.terminate(), 0);
  });

  it('a process that starts without it serves what is stored, and reads as soon as it is there', async () => {
    await at.fail(idsFrom('unread', 200));
    await kafka.kill();
    const replica = await at.start(undefined, { DLQ_RETRY_LEASE: '30s' });
    const apiOnly = await at.start(undefined, { ROLES: 'api' });
    for (const one of [replica, apiOnly]) {
      await untilDegraded(one);
      await retryInVain(at, one);
    }
    await kafka.restart();
    for (const one of [replica, apiOnly]) await untilReadiness(one, 'healthy');
    await at.taken();
    await checkLedger(at, replica);
    assert.deepEqual(await retryAll(at, replica), { status: 200, retried: await at.count(), failed: 0 });
    const rows = await checkLedger(at, replica);
    assert.ok(rows.every(({ status }) => status === 'RESOLVED'));
  });

  it('a retry that it does not answer is in doubt and costs one attempt', async () => {
    await at.fail(['unanswered', 'warm-up']);
    const replica = await at.start();
    await at.taken();
    const warmUp = (await rowsOf(at)).find(({ name }) => name === 'warm-up');
    assert.equal((await retryOne(warmUp?.id ?? '', replica))?.status, 200);
    await kafka.pause();
    const { row, reason } = await retryInVain(at, replica);
    assert.equal(reason, 'in_doubt');
    await untilDegraded(replica);
    kafka.resume();
    await untilReadiness(replica, 'healthy');
    assert.deepEqual(await retryAll(at, replica), { status: 200, retried: 1, failed: 0 });
    await checkLedger(at, replica, [[row]]);
  });
});
