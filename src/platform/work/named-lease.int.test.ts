import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import type { Service } from '../../kernel/service.ts';
import { createNamedLease } from './named-lease.ts';
import { sql } from '../postgres/sql.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

type Holder = Readonly<{
  service: Service;
  started: Promise<void>;
  ended: Promise<void>;
  isHolding(): boolean;
}>;

function createHolder(owner: string): Holder {
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  let isHolding = false;
  const service = createNamedLease(createTestWorker(database.db, owner), {
    name: 'test',
    leaseMs: 300,
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
