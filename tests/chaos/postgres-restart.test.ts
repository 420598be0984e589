import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { checkLedger, lostAttempts, rowsOf, untilReaped } from './support/ledger.ts';
import { untilReadiness } from './support/readiness.ts';
import { startRestartablePostgres, type RestartablePostgres } from './support/restartable-postgres.ts';
import { retryAll } from './support/retry.ts';
import { idsFrom, openScene, type Scene } from './support/scene.ts';
import { until } from './support/until.ts';

describe('When PostgreSQL crashes and comes back', { skip: await whyNoKafka() }, () => {
  let postgres: RestartablePostgres;
  let at: Scene;
  before(async () => {
    postgres = await startRestartablePostgres();
    at = await openScene({ database: postgres });
  });
  after(async () => {
    await at.close();
    await postgres.stop();
  });

  it('the process says that it is unhealthy, recovers by itself, and loses nothing', async () => {
    const replica = await at.start();
    await untilReadiness(replica, 'healthy');
    await at.fail(idsFrom('before', 2000), { padding: 500 });
    await until('something is stored', async () => (await at.count()) > 0 || null);
    await postgres.crash();

    const down = await untilReadiness(replica, 'unhealthy');
    assert.equal(down.status, 503);
    assert.equal(down.body.checks['database']?.status, 'unhealthy');
    assert.equal((await replica.get('/healthz'))?.status, 200);
    const listed = await replica.get(`/api/v1/dlq/${at.originalTopic}`);
    assert.equal(listed?.status, 503, JSON.stringify(listed?.body));
    await at.fail(idsFrom('meanwhile', 500));

    await postgres.restart();
    const up = await untilReadiness(replica, 'healthy');
    assert.equal(up.status, 200);
    await at.taken();
    await checkLedger(at, replica);
  });

  it('a retry-all that is under way is ended or given back, and a later one finishes it', async () => {
    const replica = await at.start();
    await at.taken();
    const answering = retryAll(at, replica);
    await until('something is resolved', async () => (await at.count('RESOLVED')) > 0 || null);
    await postgres.crash();
    await postgres.restart();
    const answer = await answering;
    assert.ok(answer?.status === 200 || answer?.status === 503, `it answers: ${answer?.status}`);
    await untilReaped(at);
    const lost = await lostAttempts(at);
    const before = (await rowsOf(at)).filter(({ status }) => status === 'PENDING').length;
    assert.deepEqual(await retryAll(at, replica), { status: 200, retried: before, failed: 0 });
    const rows = await checkLedger(at, replica, [lost]);
    assert.ok(rows.every(({ status }) => status === 'RESOLVED'));
  });
});
