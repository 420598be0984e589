import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { connectTo, createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { sleep, systemClock } from '../../kernel/clock.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createWake } from '../../platform/work/wake.ts';
import { openCircuit, type Circuit } from '../domain/circuit.ts';
import type { SendOutcome } from '../domain/order.ts';
import { rateAt, type Throttle } from '../../kernel/targets/throttle.ts';
import { createDestinationGate, refreshGates, type DestinationGate } from './destination-gate.ts';
import { healthy, type DestinationState } from './shared-state.ts';
import { createPostgresDestinationState } from './destination-state.ts';

let database: TestDatabase;
let otherDb: Database;
before(async () => {
  database = await createTestDatabase();
  otherDb = connectTo(database.url);
});
after(async () => {
  await otherDb.end();
  await database.drop();
});

const sent: SendOutcome = {
  end: 'sent',
  answer: { status: 200, digest: 'sha256:00', outsideId: null },
  isConflict: false,
};
const limited: SendOutcome = { end: 'limited', detail: '429' };
const timeout: SendOutcome = { end: 'unknown', code: 'NETWORK_TIMEOUT', detail: 'no answer\0' };
const timing = { initialMs: 100, maxMs: 400, leaseMs: 60_000 };

/** A replica: its own connections, its own gate. */
async function createReplica(
  db: Database,
  destination: string,
  { replicas = 2, leaseMs = timing.leaseMs } = {},
): Promise<DestinationGate> {
  const gate = createDestinationGate(
    {
      store: createPostgresDestinationState(db),
      clock: systemClock,
      timing: { ...timing, leaseMs },
      replicas: () => replicas,
      onChange: () => {},
      onError: (error) => assert.fail(String(error)),
    },
    destination,
  );
  await gate.refresh();
  return gate;
}

async function failFive(gate: DestinationGate): Promise<void> {
  for (const id of [1n, 2n, 3n, 4n, 5n]) gate.report(id, timeout);
  await gate.flush();
}

type Trace = { xmin: string; ctid: string; version: bigint };
const traceOf = (destination: string): Promise<readonly Trace[]> =>
  database.db.query<Trace>(sql`
    SELECT xmin::text, ctid::text, version FROM outbox.destination_state WHERE destination = ${destination}`);

test('replicas under full load never exceed the rate together in any second, and use it', async () => {
  // The third one is new: the others have not noticed it yet, so together they ask for more than there is.
  const gates = [
    await createReplica(database.db, 'busy'),
    await createReplica(otherDb, 'busy'),
    await createReplica(otherDb, 'busy', { replicas: 3 }),
  ];
  const [first] = gates;
  first?.started(40);
  first?.report(1n, limited);
  await first?.flush();
  await Promise.all(gates.map((gate) => gate.refresh()));
  const sentIn = new Map<number, number>();
  const untilMs = Date.now() + 3500;

  const send = async (gate: DestinationGate): Promise<number> => {
    let total = 0;
    while (Date.now() < untilMs) {
      const second = Math.floor(Date.now() / 1000) * 1000;
      const permit = gate.mayClaim(5);
      const used = Math.max(0, permit.limit - 1);
      sentIn.set(second, (sentIn.get(second) ?? 0) + used);
      total += used;
      if (permit.limit > 1) gate.giveBack(permit, 1);
      if (used === 0) await sleep(Math.max(1, permit.waitMs));
    }
    return total;
  };
  const totals = await Promise.all(gates.map(send));

  const { states } = createPostgresDestinationState(database.db);
  const throttle = (await states(['busy'])).get('busy')?.state.throttle ?? null;
  assert.deepEqual([throttle?.rate, throttle?.peak], [40, 80]);
  for (const [second, count] of sentIn) {
    const allowed = rateAt(throttle, second + 999) ?? 0;
    assert.ok(count <= allowed, `${count} in a second that allows ${allowed}`);
  }
  assert.ok(Math.min(...totals) > 0, 'all of them send');
  assert.ok(Math.max(...sentIn.values()) >= 30, `at most ${Math.max(...sentIn.values())} in a second`);
});

test('one replica opens the circuit and both stop; one probes, and its answer lets both resume', async () => {
  const [one, two] = [await createReplica(database.db, 'away'), await createReplica(otherDb, 'away')];
  await failFive(one);
  await two.refresh();
  assert.deepEqual([one.mayClaim().limit, two.mayClaim().limit], [0, 0]);
  assert.equal(two.snapshot().circuit.reason, 'NETWORK_TIMEOUT: no answer\uFFFD');

  for (const outcome of [timeout, timeout, sent]) {
    const probes = await eventually(async () => {
      const taken = await Promise.all([one.takeProbe(), two.takeProbe()]);
      assert.ok(taken.some((probe) => probe !== null));
      return taken;
    });
    assert.equal(probes.filter((probe) => probe !== null).length, 1);
    assert.deepEqual(await Promise.all([one.takeProbe(), two.takeProbe()]), [null, null]);
    const [prober, other] = probes[0] === null ? [two, one] : [one, two];
    await prober.reportProbe(7n, outcome);
    await other.refresh();
  }
  assert.deepEqual([one.mayClaim().limit, two.mayClaim().limit], [Infinity, Infinity]);
});

test('a replica that is lost with its probe does not block the next one', async () => {
  const [lost, other] = [
    await createReplica(database.db, 'lost', { leaseMs: 150 }),
    await createReplica(otherDb, 'lost', { leaseMs: 150 }),
  ];
  await failFive(lost);
  await eventually(async () => assert.notEqual(await lost.takeProbe(), null));
  await other.refresh();
  assert.equal(await other.takeProbe(), null);
  await eventually(async () => assert.notEqual(await other.takeProbe(), null));
});

test('for a healthy destination nothing is written, with or without a row', async () => {
  const [fresh, healed] = [
    await createReplica(database.db, 'fresh'),
    await createReplica(database.db, 'healed'),
  ];
  await failFive(healed);
  await eventually(async () => assert.notEqual(await healed.takeProbe(), null));
  await healed.reportProbe(1n, sent);
  const before = await traceOf('healed');
  const deps = { store: createPostgresDestinationState(database.db), clock: systemClock };
  for (let round = 0; round < 5; round += 1) {
    for (const gate of [fresh, healed])
      for (let id = 0n; id < 100n; id += 1n) {
        gate.started(1);
        gate.report(id, id % 4n === 0n ? timeout : sent);
        assert.equal(gate.mayClaim().limit, Infinity);
      }
    await refreshGates(deps, [fresh, healed]);
    await Promise.all([fresh.flush(), healed.flush()]);
    assert.equal(await healed.takeProbe(), null);
  }
  assert.deepEqual(await traceOf('fresh'), []);
  assert.equal(before.length, 1);
  assert.deepEqual(await traceOf('healed'), before);
});

test('changes are serialised, also the first ones of a destination without a row', async () => {
  const open = (db: Database, i: number) =>
    createPostgresDestinationState(db).change('crowded', ({ throttle, circuit }, nowMs) => ({
      state: { throttle, circuit: openCircuit(circuit, `away ${i}`, nowMs, timing) },
      result: circuit === null,
    }));
  const changed = await Promise.all(
    Array.from({ length: 8 }, (_, i) => [open(database.db, i), open(otherDb, i + 8)]).flat(),
  );
  assert.equal(changed.filter(({ result }) => result).length, 1);
  assert.equal(new Set(changed.map(({ reading }) => reading.state.circuit?.reason)).size, 1);
  assert.deepEqual(
    (await traceOf('crowded')).map(({ version }) => version),
    [1n],
  );
});

test('a change that waited for a lock is decided with the time after it was granted', async () => {
  const store = createPostgresDestinationState(database.db);
  await store.change('waiting', (_state, nowMs) => ({
    state: { throttle: null, circuit: openCircuit(null, 'away', nowMs, timing) },
    result: null,
  }));
  let waiting: Promise<number> | undefined;
  const releasedAtMs = await otherDb.transaction(async (tx) => {
    await tx.query(sql`SELECT 1 FROM outbox.destination_state WHERE destination = 'waiting' FOR UPDATE`);
    waiting = store.change('waiting', (state, nowMs) => ({ state, result: nowMs })).then((one) => one.result);
    await eventually(async () => {
      const blocked = await database.db.query(sql`
        SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%destination_state%'`);
      assert.equal(blocked.length, 1);
    });
    const [row] = await tx.query<{ now: Date }>(sql`SELECT clock_timestamp() AS now`);
    return row?.now.getTime() ?? Infinity;
  });
  assert.ok(((await waiting) ?? 0) >= releasedAtMs);
});

test('a decision that throws changes nothing and leaves no lock', async () => {
  const store = createPostgresDestinationState(database.db);
  await assert.rejects(
    store.change('failing', () => {
      throw new Error('no');
    }),
  );
  const reading = (await store.states(['failing'])).get('failing');
  assert.deepEqual([reading?.state, reading?.version], [healthy, 0n]);
});

test('every state is read as it was written', async () => {
  const store = createPostgresDestinationState(database.db);
  const ms = fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 });
  const rate = fc.double({ min: 1, max: 1e6, noNaN: true });
  const throttles = fc
    .record({
      rate,
      peak: rate,
      cutAtMs: ms,
      holdUntilMs: fc.option(ms),
      windowAtMs: ms,
      windowTaken: fc.nat(1e6),
    })
    .map((one): Throttle => ({ ...one, peak: Math.max(one.rate, one.peak) }));
  const circuits: fc.Arbitrary<Circuit> = fc.record({
    openedAtMs: ms,
    reason: fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\0', '')),
    intervalMs: fc.nat(60_000),
    nextProbeAtMs: ms,
    lastProbeId: fc.option(fc.bigInt(1n, 2n ** 63n - 1n)),
  });
  const anyState: fc.Arbitrary<DestinationState> = fc.record({
    throttle: fc.option(throttles),
    circuit: fc.option(circuits),
  });
  await fc.assert(
    fc.asyncProperty(anyState, async (any) => {
      const state = structuredClone(any);
      const { reading } = await store.change('any', () => ({ state, result: null }));
      const known = await store.states(['any', 'none']);
      assert.deepEqual([known.get('any')?.state, known.get('any')?.version], [state, reading.version]);
      assert.deepEqual(known.get('none')?.state, healthy);
    }),
    { numRuns: 50 },
  );
});

test('workers that wait for a destination are woken when its circuit opens and closes', async () => {
  const wake = createWake(otherDb, { listen: true, worker: 'waiter', onError: () => {} });
  await wake.start();
  const gate = await createReplica(database.db, 'awaited');
  const stopping = AbortSignal.timeout(30_000);
  try {
    await eventually(() => assert.ok(wake.isListening()));
    const close = async (): Promise<void> => {
      await eventually(async () => assert.notEqual(await gate.takeProbe(), null));
      await gate.reportProbe(1n, sent);
    };
    for (const turn of [() => failFive(gate), close]) {
      await database.db.query(sql`DELETE FROM platform.idle_workers`);
      const woken = wake.wait('outbox:awaited', 600_000, stopping);
      await eventually(async () => {
        const idle = await otherDb.query(sql`SELECT 1 FROM platform.idle_workers`);
        assert.equal(idle.length, 1);
      });
      await turn();
      await woken;
    }
    assert.equal(stopping.aborted, false);
  } finally {
    await wake.stop(stopping);
  }
});
