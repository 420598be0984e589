import { sleep } from '../../src/kernel/clock.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { storeAbort } from '../../src/saga/decide/abort-saga.ts';
import { settleStep, type StepRequest } from '../../src/saga/decide/act-on-step.ts';
import type { Chance } from './chance.ts';
import { patiently } from './patiently.ts';
import type { Tally } from './tally.ts';
import { testAct } from '../support/acts.ts';

/** Persons who cancel sagas in the middle of their way, and act where one waits for them. */
export type SagaPeople = Readonly<{ stop(): Promise<void>; breaches(): readonly string[] }>;

export type SagaPeopleOptions = Readonly<{ db: Database; chance: Chance; tally: Tally }>;

const lookEveryMs = 150;

export function startSagaPeople({ db, chance, tally }: SagaPeopleOptions): SagaPeople {
  const stopping = new AbortController();
  const breaches: string[] = [];
  const deps = { db, serviceOf: () => ({ isIdempotent: true }), addEvents: null };
  const by = { actor: 'soak', reason: 'a random wish' };

  const abortSome = async (): Promise<void> => {
    const rows = await patiently(() =>
      db.query<{ id: string }>(sql`
        SELECT id FROM saga.saga_states WHERE status IN ('STARTED', 'RUNNING', 'COMPENSATING') ORDER BY random() LIMIT 2`),
    );
    for (const { id } of rows) {
      const kind = chance.is(0.7) ? 'cancel' : 'compensate';
      const { outcome } = await patiently(() =>
        storeAbort(db, id, { kind, by, act: testAct('saga:sagas:cancel') }),
      );
      tally.count(`person: ${kind} ${outcome}`);
      if (outcome === 'stored') breaches.push(...(await wrongAbort(id, kind)));
    }
  };

  /** A stored wish is there, and the saga has not ended well beside it. */
  const wrongAbort = async (id: string, kind: string): Promise<readonly string[]> => {
    const [row] = await patiently(() =>
      db.query<{ wish: string | null; status: string }>(sql`
        SELECT abort_requested AS wish, status FROM saga.saga_states WHERE id = ${id}`),
    );
    return row?.wish === kind && row.status !== 'COMPLETED'
      ? []
      : [`${id}: ${kind} was stored and is not there`];
  };

  const decideSome = async (): Promise<void> => {
    const rows = await patiently(() =>
      db.query<{ id: string; step_name: string; stuck_op: string }>(sql`
        SELECT t.id, d.definition #>> ARRAY['steps', t.stuck_step::text, 'name'] AS step_name, t.stuck_op
        FROM saga.saga_states t JOIN saga.workflow_definitions d ON d.hash = t.definition_hash
        WHERE t.needs_attention ORDER BY random() LIMIT 3`),
    );
    for (const { id, step_name: stepName } of rows) {
      const kind = chance.pick(['retry', 'retry', 'skip', 'resolve'] as const);
      const act = { stepName, by, kind, ...(kind === 'resolve' ? { outcome: 'done' } : {}) } as StepRequest;
      const { outcome } = await patiently(() =>
        settleStep(deps, id, act, { act: testAct('saga:sagas:repair') }),
      );
      tally.count(`person: ${kind} ${outcome}`);
    }
  };

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await sleep(lookEveryMs, stopping.signal);
      if (chance.is(0.3)) await abortSome();
      if (chance.is(0.2)) await decideSome();
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
    breaches: () => breaches,
  };
}
