import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Pool, type PoolClient } from 'pg';
import { call, saga, service, type SagaWorkflow } from '../../src/sdk/index.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { root, startSagaSystem, workflowRoot, type SagaSystem } from '../support/saga-system.ts';

/** Which definition a saga starts with, and what happens while another transaction holds its key, at every door. */

const shop = service('shop', { charge: call('POST /charge') });

let at: SagaSystem;
let pool: Pool;
before(async () => {
  at = await startSagaSystem();
  pool = new Pool({ connectionString: at.system.database.url });
});
after(async () => {
  await pool?.end();
  await at?.drop();
});

type Order = Readonly<{ sku: string }>;
const order: Order = { sku: 'shoe' };

/** Two versions of a workflow differ in the name of their step. */
function versionOf(name: string, step: string): SagaWorkflow<Order> {
  return saga<Order>(name)
    .step(step, { do: () => shop.charge({}), undo: 'none' })
    .build();
}

async function register({ text }: SagaWorkflow<Order>): Promise<void> {
  const answer = await at.system.api.post(workflowRoot, { workflow_yaml: text });
  assert.equal(answer.status, 201, answer.text);
}

async function currentHash(name: string): Promise<string | null> {
  const answer = await at.system.api.get<{ hash: string }>(`${workflowRoot}/${name}`);
  return answer.status === 200 ? answer.body.hash : null;
}

async function inTransaction<T>(
  end: 'COMMIT' | 'ROLLBACK',
  work: (tx: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const value = await work(client);
    await client.query(end);
    return value;
  } finally {
    client.release(true);
  }
}

async function sagaCount(name: string): Promise<number> {
  const rows = await at.system.db.query(sql`SELECT 1 FROM saga.saga_states WHERE workflow_name = ${name}`);
  return rows.length;
}

describe('a saga starts with the definition of the object that it was given', () => {
  test('an object that is not registered is refused with both hashes, and its transaction goes on', async () => {
    const [known, unknown] = [versionOf('refused', 'old'), versionOf('refused', 'new')];
    await register(known);
    await inTransaction('COMMIT', async (tx) => {
      assert.deepEqual(await saga.start(tx, unknown, order), {
        outcome: 'unregistered',
        sagaId: null,
        hash: unknown.hash,
        currentHash: known.hash,
        reason: `the workflow refused has no registered definition ${unknown.hash}; its current one is ${known.hash}`,
      });
      await tx.query('SELECT 1');
    });
    assert.equal(await sagaCount('refused'), 0);
  });

  test('an object that is registered is used, also where it is no longer the current one', async () => {
    const [old, current] = [versionOf('pinned', 'old'), versionOf('pinned', 'new')];
    await register(old);
    await register(current);
    for (const [workflow, step] of [
      [old, 'old'],
      [current, 'new'],
    ] as const) {
      const started = await inTransaction('COMMIT', (tx) => saga.start(tx, workflow, order));
      const told = await at.becomes(started.sagaId ?? '', 'COMPLETED');
      assert.equal(told.saga.definition_hash, workflow.hash);
      assert.equal(told.step_logs[0]?.step_name, step);
    }
    assert.equal(await currentHash('pinned'), current.hash);
  });

  test('a name alone starts with the current definition', async () => {
    const [old, current] = [versionOf('named', 'old'), versionOf('named', 'new')];
    await register(old);
    await register(current);
    const started = await inTransaction('COMMIT', (tx) => saga.start(tx, 'named', order));
    assert.equal((await at.told(started.sagaId ?? '')).saga.definition_hash, current.hash);
  });

  test('with register it is registered in the same transaction, or not at all', async () => {
    const workflow = versionOf('registered', 'a');
    const start = (tx: PoolClient) => saga.start(tx, workflow, order, { register: true });
    const undone = await inTransaction('ROLLBACK', start);
    assert.equal(undone.outcome, 'started');
    assert.equal(await currentHash('registered'), null);
    const started = await inTransaction('COMMIT', start);
    await at.becomes(started.sagaId ?? '', 'COMPLETED');
    assert.equal(await currentHash('registered'), workflow.hash);
  });

  test('an older service that registers its known definition does not revert a newer one', async () => {
    const [old, current] = [versionOf('kept', 'old'), versionOf('kept', 'new')];
    await register(old);
    await register(current);
    const started = await inTransaction('COMMIT', (tx) => saga.start(tx, old, order, { register: true }));
    assert.equal((await at.told(started.sagaId ?? '')).saga.definition_hash, old.hash);
    assert.equal(await currentHash('kept'), current.hash);
  });

  test('a name cannot be registered, and an object must be what its hash says', async () => {
    await inTransaction('COMMIT', async (tx) => {
      await assert.rejects(saga.start(tx, 'named', order, { register: true }), /register needs the workflow/);
      const workflow = versionOf('forged', 'a');
      const forged = { ...workflow, text: versionOf('forged', 'b').text };
      await assert.rejects(
        saga.start(tx, forged, order, { register: true }),
        /its text has the hash sha256:/,
      );
      const empty = { ...workflow, text: 'nonsense' };
      await assert.rejects(saga.start(tx, empty, order, { register: true }), /its text is not a workflow/);
      const unnamed = { ...workflow, hash: 'x' };
      await assert.rejects(saga.start(tx, unnamed, order), /workflow\.hash is not a hash/);
    });
  });

  test('SQL takes a hash and answers with the current one', async () => {
    const [known, unknown] = [versionOf('in-sql', 'old'), versionOf('in-sql', 'new')];
    await register(known);
    const start = (hash: string) =>
      at.system.db.query<{ saga_id: string | null; outcome: string; current_hash: string }>(sql`
        SELECT saga_id, outcome, current_hash FROM saga.start_saga('in-sql', p_hash => ${hash})`);
    assert.deepEqual(await start(unknown.hash), [
      { saga_id: null, outcome: 'unregistered', current_hash: known.hash },
    ]);
    assert.equal((await start(known.hash))[0]?.outcome, 'started');
    // A hash of another workflow is no definition of this one.
    await register(versionOf('in-sql-too', 'old'));
    const [other] = await start(versionOf('in-sql-too', 'old').hash);
    assert.equal(other?.outcome, 'unregistered');
    await assert.rejects(start('sha256:short'), { code: '22023' });
  });

  test('HTTP takes a hash, and answers 409 with both', async () => {
    const [known, unknown] = [versionOf('over-http', 'old'), versionOf('over-http', 'new')];
    await register(known);
    const start = (hash: string) =>
      at.system.api.post<{ saga_id: string }>(root, {
        workflow_name: 'over-http',
        payload: order,
        definition_hash: hash,
      });
    const refused = await start(unknown.hash);
    assertError(refused, 409, 'SYS_SAGA_CONFLICT');
    assert.ok(refused.text.includes(unknown.hash) && refused.text.includes(known.hash), refused.text);
    assert.equal((await start(known.hash)).status, 201);
    assertError(await start('sha256:short'), 400, 'SYS_SAGA_VALIDATION_ERROR');
  });
});

describe('a key that an open transaction holds', () => {
  /** Its holder is asked for something now and then: a session that idles in a transaction is ended. */
  async function whileHeld(key: string, work: () => Promise<void>): Promise<void> {
    await register(versionOf('held', 'a'));
    await inTransaction('ROLLBACK', async (tx) => {
      assert.equal((await saga.start(tx, 'held', order, { key })).outcome, 'started');
      const begin = performance.now();
      await work();
      // Half a second of patience, and a busy machine.
      assert.ok(performance.now() - begin < 5000, `${Math.round(performance.now() - begin)} ms`);
    });
  }

  test('is busy in the library, and free once the transaction has ended', async () => {
    await whileHeld('k-sdk', () =>
      inTransaction('COMMIT', async (tx) => {
        assert.deepEqual(await saga.start(tx, 'held', order, { key: 'k-sdk' }), {
          outcome: 'busy',
          sagaId: null,
          reason: 'another open transaction holds the key; try again once it has ended',
        });
        // The transaction is still usable.
        assert.equal((await saga.start(tx, 'held', order, { key: 'k-other' })).outcome, 'started');
      }),
    );
    const free = await inTransaction('COMMIT', (tx) => saga.start(tx, 'held', order, { key: 'k-sdk' }));
    assert.equal(free.outcome, 'started');
  });

  test('is busy in SQL', async () => {
    await whileHeld('k-sql', async () => {
      const rows = await at.system.db.query(sql`
        SELECT saga_id, outcome FROM saga.start_saga('held', '{}', p_key => 'k-sql')`);
      assert.deepEqual(rows, [{ saga_id: null, outcome: 'busy' }]);
    });
  });

  test('is answered 409 with Retry-After over HTTP, and names the cause', async () => {
    await whileHeld('k-http', async () => {
      const body = { workflow_name: 'held', payload: order };
      const answer = await at.system.api.post(root, body, { 'idempotency-key': 'k-http' });
      assertError(answer, 409, 'SYS_SAGA_BUSY');
      assert.match(answer.text, /another open transaction holds this idempotency key/);
      assert.equal(answer.headers.get('retry-after'), '1');
    });
  });
});

describe('a definition that an open transaction registers', () => {
  test('is busy for whoever registers or starts the same, and free afterwards', async () => {
    const workflow = versionOf('twice', 'a');
    const start = (tx: PoolClient) => saga.start(tx, workflow, order, { register: true });
    await inTransaction('COMMIT', async (tx) => {
      assert.equal((await start(tx)).outcome, 'started');
      const second = await inTransaction('COMMIT', start);
      assert.deepEqual(second, {
        outcome: 'busy',
        sagaId: null,
        reason: 'another open transaction registers the workflow; try again once it has ended',
      });
      const posted = await at.system.api.post(workflowRoot, { workflow_yaml: workflow.text });
      assertError(posted, 409, 'SYS_SAGA_BUSY');
    });
    assert.equal((await inTransaction('COMMIT', start)).outcome, 'started');
  });
});
