import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { sleep } from '../../src/kernel/clock.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { checkLedger, copiesOf, doubled, inFlight, rowsOf, untilReaped, type Row } from './support/ledger.ts';
import { retryAll, retryOne } from './support/retry.ts';
import { idsFrom, openScene, type Scene } from './support/scene.ts';
import type { Replica } from './support/start-replica.ts';
import { until } from './support/until.ts';

async function scene(t: TestContext, partitions = 1): Promise<Scene> {
  const at = await openScene({ partitions });
  t.after(() => at.close());
  return at;
}

const staleWritesOf = (replica: Replica): Promise<number> =>
  replica.metric('redrive_stale_writes_total', 'slice="dlq"');

async function untilStale(replica: Replica, count: number): Promise<void> {
  await until(
    `${count} stale writes are counted`,
    async () => (await staleWritesOf(replica)) >= count || null,
    {
      explain: replica.log,
    },
  );
  assert.equal(await staleWritesOf(replica), count);
}

async function onlyRow(at: Scene): Promise<Row> {
  const [row] = await rowsOf(at);
  return row ?? assert.fail('there is no row');
}

/** Who holds partitions of the topic now. */
async function readers({ db, dlqTopic }: Scene): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ owner: string }>(sql`
    SELECT lease_owner AS owner FROM dlq.source_partitions
    WHERE topic = ${dlqTopic} AND lease_until > clock_timestamp()`);
  return new Set(rows.map(({ owner }) => owner));
}

/** A process may fall asleep while the database still works on a claim that it has sent. */
async function untilIdle({ db }: Scene): Promise<void> {
  await until('no statement is running', async () => {
    const rows = await db.query<{ running: bigint }>(sql`
      SELECT count(*) AS running FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()`);
    return rows[0]?.running === 0n || null;
  });
}

const betweenRoundsMs = 20;
const apiOnly = { ROLES: 'api' } as const;
const longLease = { ...apiOnly, DLQ_RETRY_LEASE: '1m' } as const;

describe('A replica that sleeps longer than its lease', { skip: await whyNoKafka() }, () => {
  it('stores nothing of what it had fetched once another replica has the partition', async (t) => {
    const at = await scene(t);
    await at.fail(idsFrom('message', 50));
    const sleeper = await at.start({ faults: [{ at: 'fetched', act: 'stop', nth: 1 }] });
    await sleeper.stopped();
    // The rescuer sleeps too: so it is the epoch alone, not the position, that keeps the first one out.
    const rescuer = await at.start(
      { faults: [{ at: 'fetched', act: 'stop', nth: 1 }] },
      { DLQ_PARTITION_LEASE: '1m' },
    );
    await rescuer.stopped();
    sleeper.resume();
    await untilStale(sleeper, 1);
    assert.equal(await at.count(), 0);
    rescuer.resume();
    await at.taken();
    assert.equal(await staleWritesOf(rescuer), 0);
    await checkLedger(at, rescuer);
  });

  it('does not settle a message that another replica is retrying by then', async (t) => {
    const at = await scene(t);
    await at.fail(['message']);
    const sleeper = await at.start({ faults: [{ at: 'published', act: 'stop', nth: 1 }] });
    await at.taken();
    const { id } = await onlyRow(at);
    const late = retryOne(id, sleeper);
    await sleeper.stopped();
    const rescuer = await at.start({ faults: [{ at: 'claimed', act: 'stop', nth: 1 }] }, longLease);
    await untilReaped(at);
    const rescue = retryOne(id, rescuer);
    await rescuer.stopped();
    const claimed = await onlyRow(at);
    sleeper.resume();
    await untilStale(sleeper, 1);
    assert.deepEqual(await onlyRow(at), claimed, 'the row is as the rescuer has claimed it');
    rescuer.resume();
    assert.equal((await rescue)?.status, 200);
    await late;
    const [row] = await checkLedger(at, rescuer, [[claimed]]);
    assert.ok(row?.status === 'RESOLVED' && row.epoch === claimed.epoch && row.retryCount === 2);
  });

  it('does not settle a message that a person has given up meanwhile', async (t) => {
    const at = await scene(t);
    await at.fail(['message']);
    const sleeper = await at.start({ faults: [{ at: 'published', act: 'stop', nth: 1 }] });
    await at.taken();
    const { id } = await onlyRow(at);
    const late = retryOne(id, sleeper);
    await sleeper.stopped();
    const crash = await inFlight(at);
    const other = await at.start(undefined, apiOnly);
    await untilReaped(at);
    assert.equal((await other.post(`/api/v1/dlq/messages/${id}/dead`))?.status, 200);
    sleeper.resume();
    await untilStale(sleeper, 1);
    await late;
    const [row] = await checkLedger(at, other, [crash]);
    assert.equal(row?.status, 'DEAD');
  });
});

/** Dead letters arrive, and every replica is asked to retry all of them, until it is told to stop. */
function startLoad(at: Scene, replicas: readonly Replica[]): Readonly<{ stop(): Promise<void> }> {
  const stopping = new AbortController();
  const again = async (round: (n: number) => Promise<unknown>): Promise<void> => {
    for (let n = 0; !stopping.signal.aborted; n += 1) {
      await round(n);
      await sleep(betweenRoundsMs, stopping.signal);
    }
  };
  const running = Promise.all([
    again((n) => at.fail(idsFrom(`round-${n}`, 20))),
    ...replicas.map((replica) => again(() => retryAll(at, replica))),
  ]);
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

describe('A replica that sleeps in the middle of a retry-all', { skip: await whyNoKafka() }, () => {
  it('settles and sends nothing more of it once its lease is over', async (t) => {
    const at = await scene(t);
    await at.fail(idsFrom('message', 1600));
    const sleeper = await at.start({ faults: [{ at: 'published', act: 'stop', nth: 1 }] });
    await at.taken();
    const late = retryAll(at, sleeper);
    await sleeper.stopped();
    await untilIdle(at);
    const asleep = await inFlight(at);
    const sent = new Set((await copiesOf(at)).keys());
    assert.equal(sent.size, 1000, 'one claim was sent');
    assert.ok(asleep.length >= 1000 && asleep.length <= 1600, 'the next may be claimed already');
    const rescuer = await at.start(undefined, apiOnly);
    await untilReaped(at);
    assert.deepEqual(await retryAll(at, rescuer), { status: 200, retried: 1600, failed: 0 });
    sleeper.resume();
    await late;
    await untilStale(sleeper, asleep.length);
    const rows = await checkLedger(at, rescuer, [asleep]);
    assert.ok(rows.every(({ status }) => status === 'RESOLVED'));
    assert.equal(rows.filter(({ retryCount }) => retryCount === 2).length, asleep.length);
    assert.deepEqual(await doubled(at), sent, 'only what was sent before it fell asleep is there twice');
  });
});

describe('Two replicas that read and retry together', { skip: await whyNoKafka() }, () => {
  it('survive the death of one and the long sleep of the other', async (t) => {
    const at = await scene(t, 4);
    const [first, second] = await Promise.all([at.start(), at.start()]);
    await until('both read', async () => (await readers(at)).size === 2 || null);
    const load = startLoad(at, [first, second]);
    t.after(() => load.stop());

    const resolved = async (more: number): Promise<void> => {
      const before = await at.count('RESOLVED');
      await until('more is resolved', async () => (await at.count('RESOLVED')) >= before + more || null, {
        explain: () => `${first.log()}\n--\n${second.log()}`,
      });
    };
    await resolved(200);
    // Asleep, the second loses its partitions and its attempts to the first.
    second.pause();
    await second.stopped();
    const asleep = await inFlight(at, second);
    await until('the first reads alone', async () => (await readers(at)).size === 1 || null);
    await resolved(200);
    second.resume();
    await until('both read again', async () => (await readers(at)).size === 2 || null);
    await resolved(200);
    await first.kill();
    const killed = await inFlight(at, first);
    await resolved(200);
    await load.stop();

    await at.taken();
    await untilReaped(at);
    await retryAll(at, second);
    await untilReaped(at);
    const rows = await checkLedger(at, second, [asleep, killed]);
    assert.ok(rows.every(({ status }) => status === 'RESOLVED'));
    assert.equal((await copiesOf(at)).size, rows.length);
  });
});
