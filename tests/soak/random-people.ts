import { sleep } from '../../src/kernel/clock.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql, type Sql } from '../../src/platform/postgres/sql.ts';
import type { Chance } from './chance.ts';
import type { Fleet } from './fleet.ts';
import { patiently } from './patiently.ts';
import { postJson } from './post-json.ts';
import type { Tally } from './tally.ts';

/** Persons who decide about orders: in their own time while things go on, and at the end about all that holds a key. */
export type People = Readonly<{
  stop(): Promise<void>;
  /** Decides about every dead order that holds back others; how many there were. */
  tidyUp(): Promise<number>;
  breaches(): readonly string[];
}>;

export type PeopleOptions = Readonly<{ db: Database; fleet: Fleet; chance: Chance; tally: Tally }>;

type Case = Readonly<{ id: bigint; inDoubt: boolean }>;
type Decision = 'skip' | 'supersede' | 'cancel';

const lookEveryMs = 700;

export function startPeople({ db, fleet, chance, tally }: PeopleOptions): People {
  const stopping = new AbortController();
  const breaches: string[] = [];

  const find = (which: Sql, limit: number): Promise<readonly Case[]> =>
    patiently(() =>
      db.query<Case>(sql`
        SELECT id, in_doubt AS "inDoubt" FROM outbox.outbox_orders WHERE ${which} ORDER BY id LIMIT ${limit}`),
    );

  const decide = async (decision: Decision, { id, inDoubt }: Case): Promise<void> => {
    const replicas = fleet.running();
    if (replicas.length === 0) return;
    const url = `${chance.pick(replicas).url}/api/v1/outbox/orders/${id}/${decision}`;
    const key = `instead-of-${id}`;
    const what =
      decision === 'supersede' ? { idempotency_key: key, request: { instead_of: Number(id) } } : {};
    const looked = inDoubt && chance.is(0.8) ? { effect_checked: true } : {};
    const told = await postJson(url, { ...what, ...looked }, decision === 'supersede' ? key : undefined);
    // A supersede that answers 200 was taken before: its first answer was lost.
    const isTaken = told?.status === (decision === 'supersede' ? 201 : 200);
    tally.count(`person: ${decision} ${told === null ? 'without an answer' : `answered ${told.status}`}`);
    if (isTaken && inDoubt && !('effect_checked' in looked))
      breaches.push(`order ${id} was in doubt, and ${decision} was taken without a look`);
  };

  const run = async (): Promise<void> => {
    for (;;) {
      await sleep(lookEveryMs, stopping.signal);
      if (stopping.signal.aborted) return;
      for (const one of await find(isUndecided, 10))
        if (chance.is(0.5)) await decide(chance.pick(['skip', 'supersede']), one);
      if (chance.is(0.2)) for (const one of await find(isWaiting, 1)) await decide('cancel', one);
    }
  };

  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
    async tidyUp() {
      const held = await find(sql`${isUndecided} AND ordering_key IS NOT NULL`, 1000);
      for (const one of held) await decide(chance.pick(['skip', 'supersede']), one);
      return held.length;
    },
    breaches: () => breaches,
  };
}

const isUndecided: Sql = sql`status = 'dead' AND resolution IS NULL`;
const isWaiting: Sql = sql`status IN ('queued', 'failed')`;
