import { setTimeout as wait } from 'node:timers/promises';
import { Pool, type ClientBase } from 'pg';
import type { SagaCall } from '../../../src/sdk/saga-guard/guard-call.ts';
import { refuse, type GuardReply } from '../../../src/sdk/saga-guard/guard-reply.ts';
import { sagaGuard } from '../../../src/sdk/saga-guard/saga-guard.ts';
import type { Op, ParticipantCall } from './script.ts';
import type { StepEffect, StepReply, StepsBook } from './steps-book.ts';

const schema = 'participant';

/**
 * A participant with the saga guard of the SDK: an effect is a row of a table of its own, written in the transaction
 * of the guard. In the handlers nothing looks whether it was there before.
 */
export async function openGuardedBook(databaseUrl: string): Promise<StepsBook> {
  const pool = new Pool({ connectionString: databaseUrl, max: 12, connectionTimeoutMillis: 5000 });
  // Without a listener a connection that the server ends would end the process.
  pool.on('error', () => {});
  const guard = sagaGuard({ pool, schema, onError: () => {} });
  await prepare(pool, () => guard.migrate());

  const note = async (tx: ClientBase, { sagaId, step, attempt }: SagaCall, op: Op): Promise<unknown> => {
    await tx.query(`INSERT INTO ${schema}.effects (saga_id, step, op, attempt) VALUES ($1, $2, $3, $4)`, [
      sagaId,
      step,
      op,
      attempt,
    ]);
    return { id: `${op} ${step} ${sagaId}` };
  };
  const act = guard.action((tx, call) => note(tx, call, 'action'));
  const undo = guard.undo((tx, call) => note(tx, call, 'compensate'));
  const refuseToAct = guard.action(() => refuse({ no: true }));
  const refuseToUndo = guard.undo(() => refuse({ no: true }));
  const longAction = (ms: number) =>
    guard.longAction({
      work: () => wait(ms),
      effect: (tx, _work, call) => note(tx, call, 'action'),
      leaseMs: 3000,
    });

  return {
    async arrive(call, handling) {
      const [doing, refusing] = call.op === 'action' ? [act, refuseToAct] : [undo, refuseToUndo];
      if (handling.do === 'begin' && call.op === 'action')
        return replyOf(await longAction(handling.ms)(requestOf(call)));
      return replyOf(await (handling.do === 'refuse' ? refusing : doing)(requestOf(call)));
    },
    async effects() {
      const { rows } = await pool.query<StepEffect>(
        `SELECT saga_id AS "sagaId", step, op, attempt FROM ${schema}.effects ORDER BY no`,
      );
      return rows;
    },
  };
}

async function prepare(pool: Pool, migrate: () => Promise<void>): Promise<void> {
  await pool.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
  await migrate();
  await pool.query(`
    CREATE TABLE IF NOT EXISTS ${schema}.effects (
      no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      saga_id text NOT NULL, step text NOT NULL, op text NOT NULL, attempt int NOT NULL)`);
}

function requestOf({ headers, body }: ParticipantCall) {
  return { headers, body: JSON.parse(body) as unknown };
}

function replyOf({ status, body, retryAfterSecs }: GuardReply): StepReply {
  return { status, body: body ?? '', ...(retryAfterSecs === null ? {} : { retryAfterS: retryAfterSecs }) };
}
