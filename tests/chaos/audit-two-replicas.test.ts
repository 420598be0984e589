import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { sleep } from '../../src/kernel/clock.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import {
  assertAnchored,
  countBlocks,
  expireSealLease,
  loggedBlocks,
  sentAnchors,
  untilSealed,
} from './support/audit-chain.ts';
import { openScene, type Scene } from './support/scene.ts';
import type { Replica } from './support/start-replica.ts';
import { until } from './support/until.ts';

/** Acts without end: people at every replica that answers, and scripts whose transactions commit in any order. */
function startActs({ db }: Scene, replicas: readonly Replica[]): () => Promise<number> {
  const stopping = new AbortController();
  let done = 0;
  const people = async (replica: Replica, queue: string): Promise<void> => {
    for (let n = 0; !stopping.signal.aborted; n += 1) {
      const verb = n % 2 === 0 ? 'pause' : 'resume';
      const body = { reason: 'tested', ...(n === 0 ? { create: true } : {}) };
      const answer = await Promise.race([
        replica.post(`/api/v1/jobs/queues/${queue}/${verb}`, body),
        sleep(500, stopping.signal),
      ]);
      if (typeof answer === 'object' && answer?.status === 200) done += 1;
      await sleep(20, stopping.signal);
    }
  };
  const script = async (openMs: number): Promise<void> => {
    while (!stopping.signal.aborted) {
      await db.transaction(async (tx) => {
        await tx.query(sql`SELECT audit.record('jobs:queues:pause', 'jobs/queues/by-hand', 'tested')`);
        await sleep(openMs);
      });
      done += 1;
    }
  };
  const running = [...replicas.map((replica, i) => people(replica, `queue-${i}`)), script(0), script(700)];
  return async () => {
    stopping.abort();
    await Promise.all(running);
    return done;
  };
}

describe('Two replicas that seal the audit log', { skip: await whyNoKafka() }, () => {
  it('seal every event once, though one sleeps in the middle of a block and the other one dies', async (t) => {
    const at = await openScene();
    const topic = `${at.originalTopic}.anchors`;
    await at.broker.createTopic(topic, 1);
    t.after(async () => {
      await at.broker.deleteTopic(topic);
      await at.close();
    });
    const { db } = at;
    const env = { ROLES: 'api,workers', AUDIT_ANCHOR_TOPIC: topic, OUTBOX_STUCK_THRESHOLD_MIN: '0.1' };
    await db.query(sql`SELECT audit.record('jobs:queues:pause', 'jobs/queues/by-hand', 'tested')`);
    const first = await at.start({ faults: [{ at: 'seal_stored', act: 'stop', nth: 2 }] }, env);
    const both = [first];
    const explain = (): string => both.map((replica) => replica.log()).join('\n--\n');
    await until('the first one seals', async () => (await countBlocks(db)) === 1, { explain });
    const second = await at.start(undefined, env);
    both.push(second);
    const stop = startActs(at, both);
    await first.stopped();

    // Longer than its lease: PostgreSQL ends its transaction, and the other one seals.
    await until('the second one has taken over', async () => (await countBlocks(db)) >= 2, { explain });
    first.resume();
    await until('the first one has noticed', async () => first.log().includes('failed to seal') || null, {
      explain,
    });
    const before = await countBlocks(db);
    await second.kill();
    await expireSealLease(db);
    await until('the first one has taken over', async () => (await countBlocks(db)) > before, { explain });

    assert.ok((await stop()) > 50, 'there was a load');
    await untilSealed(db, explain);
    await assertAnchored(db, loggedBlocks(both), await sentAnchors(at, topic));
  });
});
