import { sleep } from '../../src/kernel/clock.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { Step, Workflow } from '../../src/saga/domain/workflow/workflow.ts';
import { storeWorkflow } from '../../src/saga/define/workflows-table.ts';
import { shopStep } from '../chaos/support/saga-scene.ts';
import type { Chance } from './chance.ts';
import { patiently } from './patiently.ts';
import { stepTimeoutMs } from './saga-moods.ts';
import type { Tally } from './tally.ts';

export type SagaLoad = Readonly<{
  count: number;
  perSecond: number;
  db: Database;
  chance: Chance;
  tally: Tally;
}>;

const starters = 6;
const names = ['order', 'refund', 'travel', 'move'] as const;
const stepNames = ['reserve', 'charge', 'pack', 'ship', 'tell'] as const;

/** A new definition under a known name comes after so many sagas: those that run keep theirs. */
const deployEvery = 200;

/** Begins sagas at a steady pace, again where there was no answer, with definitions that change on the way; their ids. */
export async function beginSagas({
  count,
  perSecond,
  db,
  chance,
  tally,
}: SagaLoad): Promise<readonly string[]> {
  const ids: string[] = [];
  const beganAtMs = performance.now();
  for (const name of names) await deploy(db, drawWorkflow(chance, name));
  let next = 0;
  const beginNext = async (): Promise<void> => {
    while (next < count) {
      const i = next;
      next += 1;
      if (i % deployEvery === deployEvery - 1) {
        tally.count('a new definition was deployed');
        await deploy(db, drawWorkflow(chance, chance.pick(names)));
      }
      await sleep(Math.max(0, beganAtMs + (i / perSecond) * 1000 - performance.now()));
      ids.push(await begin(db, chance.pick(names), `saga-${String(i).padStart(6, '0')}`));
    }
  };
  await Promise.all(Array.from({ length: starters }, beginNext));
  return ids;
}

async function deploy(db: Database, workflow: Workflow): Promise<void> {
  await patiently(() => storeWorkflow(db, workflow, { isFromFile: false }));
}

/** The key makes a saga whose answer was lost the same one again. */
async function begin(db: Database, name: string, tag: string): Promise<string> {
  const [row] = await patiently(() =>
    db.query<{ saga_id: string; outcome: string }>(sql`
      SELECT saga_id, outcome
      FROM saga.start_saga(${name}, jsonb_build_object('tag', ${tag}::text), NULL, NULL, ${tag})`),
  );
  if (row === undefined || (row.outcome !== 'started' && row.outcome !== 'replayed'))
    throw new Error(`${tag} was answered ${row?.outcome}`);
  return row.saga_id;
}

function drawWorkflow(chance: Chance, name: string): Workflow {
  const length = chance.between(1, stepNames.length);
  const pivot = chance.is(0.3) ? chance.between(0, length - 1) : length;
  const steps = stepNames.slice(0, length).map((step, index) => drawStep(chance, step, index - pivot));
  return { name, deadlineMs: chance.is(0.3) ? chance.between(2000, 60_000) : null, steps };
}

/** `behind` the pivot is above 0, the pivot itself is 0. */
function drawStep(chance: Chance, name: string, behind: number): Step {
  return shopStep(name, {
    timeoutMs: stepTimeoutMs,
    isPivot: behind === 0,
    // Behind the pivot it would be tried for minutes.
    service: behind <= 0 && chance.is(0.03) ? 'gone' : 'shop',
    undo: behind >= 0 ? { kind: 'absent' } : drawUndo(chance),
    retry: {
      maxAttempts: chance.between(2, 5),
      backoff: 'exponential',
      initialIntervalMs: chance.between(20, 800),
    },
  });
}

function drawUndo(chance: Chance): Step['undo'] {
  if (chance.is(0.85)) return { kind: 'call', method: 'POST /undo' };
  return { kind: chance.is(0.5) ? 'none' : 'absent' };
}
