import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import type { Service } from '../../kernel/service.ts';
import type { Queryable } from '../postgres/database.ts';
import { sql } from '../postgres/sql.ts';
import { createNamedLease } from './named-lease.ts';
import { NamedLeases } from './named-leases.ts';
import type { Worker } from './work.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

type Holder = Readonly<{
  service: Service;
  started: Promise<void>;
  ended: Promise<void>;
  isHolding(): boolean;
}>;

const leaseMs = 300;

function createHolder(owner: string, name = 'test', worker = createLeasingWorker(owner)): Holder {
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  let isHolding = false;
  const service = createNamedLease(worker, {
    name,
    onError: () => {},
    async work(held) {
      isHolding = true;
      started.resolve();
      if (!held.aborted) await once(held, 'abort');
      isHolding = false;
      ended.resolve();
    },
  });
  return { service, started: started.promise, ended: ended.promise, isHolding: () => isHolding };
}

function createLeasingWorker(owner: string, db: Queryable = database.db): Worker {
  const worker = { ...createTestWorker(database.db, owner), db };
  return { ...worker, leases: new NamedLeases(worker, { leaseMs, onError: () => {} }) };
}

const soon = (): AbortSignal => AbortSignal.timeout(5000);

test('one of two processes works; when it stops, the other takes over', async () => {
  const [one, two] = [createHolder('one'), createHolder('two')];
  await one.service.start();
  await one.started;
  await two.service.start();
  assert.equal(two.isHolding(), false);
  await one.service.stop(soon());
  await two.started;
  await two.service.stop(soon());
});

test('a holder whose lease was taken away stops working', async () => {
  const holder = createHolder('three');
  await holder.service.start();
  await holder.started;
  await database.db.query(sql`
    UPDATE platform.leases
    SET lease_epoch = nextval('platform.lease_epochs'), lease_until = now() + interval '1 hour', lease_owner = 'thief'`);
  await holder.ended;
  await holder.service.stop(soon());
  const rows = await database.db.query<{ lease_owner: string }>(sql`SELECT lease_owner FROM platform.leases`);
  assert.equal(rows[0]?.lease_owner, 'thief', 'what it no longer holds it does not give back');
});

test('all leases of a process are claimed by one statement, and renewed by one', async (t) => {
  const names = ['first', 'second', 'third'];
  const claims: number[] = [];
  const renewals: number[] = [];
  const watched: Queryable = {
    query(statement) {
      const values = String(statement.values);
      const count = names.filter((name) => values.includes(name)).length;
      if (statement.text.includes('lease_until = clock_timestamp()'))
        (statement.text.includes('nextval') ? claims : renewals).push(count);
      return database.db.query(statement);
    },
  };
  const worker = createLeasingWorker('four', watched);
  const holders = names.map((name) => createHolder('four', name, worker));
  t.after(() => Promise.all(holders.map(({ service }) => service.stop(soon()))));
  await Promise.all(holders.map(({ service }) => service.start()));
  await Promise.all(holders.map(({ started }) => started));
  assert.deepEqual(claims, [3]);
  await eventually(async () => assert.deepEqual(renewals.slice(0, 2), [3, 3]));
  assert.ok(holders.every(({ isHolding }) => isHolding()));
});

test('a holder whose renewals hang stops working when its lease expires', async () => {
  let isHanging = false;
  const hanging: Queryable = {
    query: (statement) => (isHanging ? new Promise(() => {}) : database.db.query(statement)),
  };
  const holder = createHolder('five', 'fifth', createLeasingWorker('five', hanging));
  await holder.service.start();
  await holder.started;
  isHanging = true;
  await holder.ended;
});

test('a lease that nobody waits for any more when it is claimed is released', async () => {
  const claiming = Promise.withResolvers<void>();
  const slow: Queryable = {
    async query(statement) {
      if (statement.text.includes('SKIP LOCKED')) claiming.resolve();
      return database.db.query(statement);
    },
  };
  const { leases } = createLeasingWorker('six', slow);
  const stopping = new AbortController();
  const taking = leases?.take({ name: 'sixth', onTaken: () => {} }, stopping.signal);
  await claiming.promise;
  stopping.abort();
  assert.equal(await taking, null);
  await eventually(async () => {
    const rows = await database.db.query<{ lease_owner: string | null; epoch: bigint }>(sql`
      SELECT lease_owner, lease_epoch AS epoch FROM platform.leases WHERE name = 'sixth'`);
    assert.ok(rows[0] !== undefined && rows[0].epoch > 0n && rows[0].lease_owner === null);
  });
});
