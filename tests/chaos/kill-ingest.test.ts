import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { checkLedger } from './support/ledger.ts';
import { idsFrom, openScene, type Scene } from './support/scene.ts';
import { until } from './support/until.ts';

const foreignLineage = { key: Buffer.from('redrive-message-id'), value: Buffer.from(crypto.randomUUID()) };

async function scene(t: TestContext): Promise<Scene> {
  const opened = await openScene();
  t.after(() => opened.close());
  return opened;
}

/** Resolves with the server's process that stores a batch and waits for a lock while it does. */
async function blockedInsert({ db }: Scene): Promise<number> {
  return until('a batch is being stored', async () => {
    const rows = await db.query<{ pid: number }>(sql`
      SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'
        AND query LIKE '%INSERT INTO dlq.dlq_messages%'`);
    return rows[0]?.pid;
  });
}

/** Storing a batch counts its rows last; while the counts are locked, it has written its rows and waits. */
const lockCounts = sql`LOCK TABLE dlq.topic_counts IN SHARE ROW EXCLUSIVE MODE`;

describe(
  'A reader that is killed loses nothing and stores nothing twice',
  { skip: await whyNoKafka() },
  () => {
    it('when it has fetched records and stored none of them', async (t) => {
      const at = await scene(t);
      await at.fail(idsFrom('first', 1500), { padding: 1500 });
      const victim = await at.start({ faults: [{ at: 'fetched', act: 'kill', nth: 2 }] });
      assert.equal(await victim.died(), 'SIGKILL');
      const stored = await at.count();
      assert.ok(stored > 0 && stored < 1500, `the first fetch alone was stored: ${stored}`);
      await at.fail(idsFrom('second', 10));
      const heir = await at.start();
      await at.taken();
      await checkLedger(at, heir);
    });

    it('when the rows of a traced batch are written and not committed', async (t) => {
      const at = await scene(t);
      await at.fail(idsFrom('traced', 300), { headers: [foreignLineage] });
      const victim = await at.start({ faults: [{ at: 'inserted', act: 'kill', nth: 1 }] });
      assert.equal(await victim.died(), 'SIGKILL');
      const heir = await at.start();
      await at.taken();
      await checkLedger(at, heir);
    });

    it('when the database finishes the batch although its reader is dead', async (t) => {
      const at = await scene(t);
      const victim = await at.start();
      await at.db.transaction(async (tx) => {
        await tx.query(lockCounts);
        await at.fail(idsFrom('orphan', 300));
        await blockedInsert(at);
        await victim.kill();
      });
      await until('the batch of the dead reader is stored', async () => (await at.count()) > 0 || null);
      const heir = await at.start();
      await at.fail(idsFrom('later', 10));
      await at.taken();
      await checkLedger(at, heir);
    });

    it('when the database rolls the batch back with its reader', async (t) => {
      const at = await scene(t);
      const victim = await at.start();
      await at.db.transaction(async (tx) => {
        await tx.query(lockCounts);
        await at.fail(idsFrom('undone', 300));
        const pid = await blockedInsert(at);
        await victim.kill();
        await tx.query(sql`SELECT pg_terminate_backend(${pid}::int, 5000)`);
      });
      assert.equal(await at.count(), 0);
      const heir = await at.start();
      await at.taken();
      await checkLedger(at, heir);
    });

    it('when the position is lost with it and the topic is read from its start', async (t) => {
      const at = await scene(t);
      await at.fail(idsFrom('known', 300));
      const victim = await at.start();
      await at.taken();
      await victim.kill();
      await at.db.query(sql`DELETE FROM dlq.source_partitions WHERE topic = ${at.dlqTopic}`);
      await at.fail(idsFrom('new', 10));
      const heir = await at.start();
      await at.taken();
      await checkLedger(at, heir);
    });
  },
);
