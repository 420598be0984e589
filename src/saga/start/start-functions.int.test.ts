import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openSagaScene, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { codeOf } from '../../kernel/errors.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { toStored, workflowHash } from '../domain/workflow/workflow-hash.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());

const workflow: Workflow = { name: 'order', deadlineMs: null, steps: [stepOf('reserve')] };

async function timeoutOf(tx: Queryable): Promise<string | undefined> {
  const [row] = await tx.query<{ lock_timeout: string }>(sql`SHOW lock_timeout`);
  return row?.lock_timeout;
}

test('a start bounds its wait for the key alone: everything else waits as long as the caller wants', async () => {
  await at.start(workflow);
  await at.db.query(sql`
    CREATE FUNCTION saga.tell_timeout() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.initiated_by := current_setting('lock_timeout');
      RETURN NEW;
    END $$`);
  await at.db.query(sql`
    CREATE TRIGGER tell_timeout BEFORE INSERT ON saga.saga_states
    FOR EACH ROW EXECUTE FUNCTION saga.tell_timeout()`);
  const start = async (tx: Queryable): Promise<string | undefined> => {
    const [row] = await tx.query<{ outcome: string }>(sql`
      SELECT outcome FROM saga.start_saga('order', '{}', p_key => 'k')`);
    return row?.outcome;
  };
  await at.db.transaction(async (holder) => {
    await holder.query(sql`SET LOCAL lock_timeout = '7s'`);
    assert.equal(await start(holder), 'started');
    assert.equal(await timeoutOf(holder), '7s');
    const seen = await holder.query(sql`SELECT initiated_by FROM saga.saga_states WHERE initiated_by = '7s'`);
    assert.equal(seen.length, 1);
    await at.db.transaction(async (other) => {
      await other.query(sql`SET LOCAL lock_timeout = '8s'`);
      assert.equal(await start(other), 'busy');
      assert.equal(await timeoutOf(other), '8s');
    });
  });
  assert.equal(await start(at.db), 'replayed');
});

test('a definition is registered under its own name and a hash of the right form, or not at all', async () => {
  const other: Workflow = { ...workflow, name: 'other' };
  const hash = workflowHash(other);
  const register = (p: Readonly<{ hash?: string | null; name?: string | null; definition?: unknown }>) => {
    const { hash: as = hash, name = 'other', definition = toStored(other) } = p;
    return at.db.query<{ outcome: string }>(sql`
      SELECT outcome FROM saga.register_workflow(${as}, ${name}, ${JSON.stringify(definition)}::jsonb, true)`);
  };
  const isRefused = (error: unknown): boolean => codeOf(error) === '22023';
  for (const flawed of [
    { hash: 'x' },
    { hash: null },
    { hash: hash.toUpperCase() },
    { name: null },
    { name: 'order' },
    { name: 'x'.repeat(256), definition: { name: 'x'.repeat(256) } },
    { definition: toStored(workflow) },
    { definition: [] },
    { definition: null },
  ])
    await assert.rejects(register(flawed), isRefused, JSON.stringify(flawed));
  assert.deepEqual(await register({}), [{ outcome: 'registered' }]);
  assert.deepEqual(await register({}), [{ outcome: 'known' }]);
  await assert.rejects(register({ name: 'order', definition: toStored(workflow) }), isRefused);
  const [row] = await at.db.query<{ current_hash: string }>(sql`
    SELECT current_hash FROM saga.workflows WHERE name = 'order'`);
  assert.equal(row?.current_hash, workflowHash(workflow));
});
