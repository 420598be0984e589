import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openSagaScene, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());

const workflowOf = (name: string): Workflow => ({
  name,
  deadlineMs: null,
  steps: [stepOf('reserve'), stepOf('charge')],
});

test('an answer is stored when the database takes it a moment later, and nothing is called again', async (t) => {
  await at.db.query(sql`CREATE SEQUENCE public.refusals`);
  await at.db.query(sql`
    CREATE FUNCTION saga.refuse_once() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('public.refusals') = 1 THEN
        RAISE EXCEPTION 'password authentication failed' USING ERRCODE = '28P01';
      END IF;
      RETURN NEW;
    END $$`);
  await at.db.query(sql`
    CREATE TRIGGER refuse_once BEFORE UPDATE ON saga.saga_step_logs FOR EACH ROW
    EXECUTE FUNCTION saga.refuse_once()`);
  t.after(() => at.db.query(sql`DROP FUNCTION saga.refuse_once() CASCADE`));
  const id = await at.start(workflowOf('refused-once'));
  at.calls.length = 0;
  const engine = at.newEngine();
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  await at.ends(id, 'COMPLETED');
  assert.deepEqual(at.calls, ['reserve', 'charge']);
});
