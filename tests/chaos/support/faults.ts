import { sleep } from '../../../src/kernel/clock.ts';
import type { SystemOptions } from '../../../src/compose.ts';
import type { Broker, OutgoingRecord, PublishResult } from '../../../src/platform/broker/port.ts';
import type { Database, Queryable } from '../../../src/platform/postgres/database.ts';
import type { Sql } from '../../../src/platform/postgres/sql.ts';

/**
 * Where a fault may strike, in the order of a dead letter's way:
 * `fetched`, records are in memory and nothing is stored; `inserted`, their rows are written and the transaction
 * is open; `claimed`, an attempt has begun and nothing is sent; `published`, the broker has answered and nothing
 * is settled; `settled`, the outcome is stored and the system has not seen the database's answer. `planning`, items of
 * a redrive are written and the transaction is open.
 *
 * Of a round of a retry policy: `round_made`, its redrive is written and the transaction is open; `round_noted`, it is
 * committed.
 *
 * And in the order of the way of an order to the outside: `order_claimed`, an attempt has begun and nothing is sent;
 * `order_answered`, the partner has answered and nothing is settled; `order_settled`, the outcome is stored and the
 * system has not seen the database's answer.
 *
 * And in the order of the way of a saga, once for each of its steps: `saga_claimed`, it is held and nothing is decided;
 * `saga_settling`, the participant has answered and nothing is written; `saga_settled`, the answer and the opening of
 * the next call are stored, the system has not seen the database's answer, and the next call is not sent.
 *
 * Of an act of a person: `act_recording`, its row of the audit log is not written; `act_recorded`, it is written, and
 * where there is a transaction, it is open; `act_committed`, all is stored and the system has not seen it. Of the audit
 * log's seals: `seal_stored`, the blocks are written and the transaction is open; `seal_anchored`, the anchors are, too;
 * `seal_committed`, all is stored and no block is logged.
 */
export type FaultPoint =
  | 'fetched'
  | 'inserted'
  | 'claimed'
  | 'published'
  | 'settled'
  | 'planning'
  | 'round_made'
  | 'round_noted'
  | 'order_claimed'
  | 'order_answered'
  | 'order_settled'
  | 'saga_claimed'
  | 'saga_settling'
  | 'saga_settled'
  | 'act_recording'
  | 'act_recorded'
  | 'act_committed'
  | 'seal_stored'
  | 'seal_anchored'
  | 'seal_committed';

/**
 * `kill` and `stop` are the real signals, sent by the process to itself. `hang` waits for good, says so on standard error,
 * and leaves the rest of the process running, so that several things can be half done at once. `refuse` lets the broker answer that it
 * will never take the records; `lose_answer` breaks the connection after the database has done its work.
 */
export type FaultAct = 'kill' | 'stop' | 'hang' | 'refuse' | 'lose_answer';

export type Fault = Readonly<{
  at: FaultPoint;
  act: FaultAct;
  /** Strikes at the n-th time only; without it, every time. */
  nth?: number;
  /** Counts only where one of the records holds this text. */
  marker?: string;
}>;

export type FaultPlan = Readonly<{
  faults: readonly Fault[];
  /** Each claim of messages but the first waits until an attempt of the one before is settled. */
  claimsWaitForSettle?: boolean;
}>;

type Values = readonly (Buffer | string | null)[];
type Reach = (at: FaultPoint, values?: Values) => Promise<'go_on' | 'refuse'>;

/** Puts the faults between a system and its database and broker. */
export function wrapWithFaults(plan: FaultPlan): NonNullable<SystemOptions['wrap']> {
  const times = new Map<Fault, number>();
  /** Also a fault before which another one strikes has had this time. */
  const isItsTime = (fault: Fault): boolean => {
    const time = (times.get(fault) ?? 0) + 1;
    times.set(fault, time);
    return fault.nth === undefined || fault.nth === time;
  };
  const reach: Reach = async (at, values = []) => {
    const due = plan.faults.filter((fault) => fault.at === at && concerns(fault, values)).filter(isItsTime);
    for (const { act } of due) {
      if (act === 'refuse') return 'refuse';
      await strike(act, at);
    }
    return 'go_on';
  };
  return {
    broker: (broker) => faultyBroker(broker, reach),
    database: (db) => faultyDatabase(db, reach, plan.claimsWaitForSettle ?? false),
  };
}

function concerns({ marker }: Fault, values: Values): boolean {
  return marker === undefined || values.some((value) => value?.includes(marker) === true);
}

/** Long enough that a signal which was sent has arrived before anything else of the process runs. */
const signalArrivesWithinMs = 50;

/** The line that a process writes for everything that hangs. */
export const hangsAt = (at: FaultPoint): string => `hangs: ${at}\n`;

async function strike(act: Exclude<FaultAct, 'refuse'>, at: FaultPoint): Promise<void> {
  switch (act) {
    case 'hang':
      process.stderr.write(hangsAt(at));
      return new Promise(() => {});
    case 'kill':
      process.kill(process.pid, 'SIGKILL');
      return new Promise(() => {});
    case 'stop':
      process.kill(process.pid, 'SIGSTOP');
      return sleep(signalArrivesWithinMs);
    case 'lose_answer':
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  }
}

function faultyBroker(broker: Broker, reach: Reach): Broker {
  return {
    ...broker,
    async fetch(positions, limits, signal) {
      const results = await broker.fetch(positions, limits, signal);
      const values = results.flatMap((one) =>
        'records' in one ? one.records.map(({ value }) => value) : [],
      );
      if (values.length > 0) await reach('fetched', values);
      return results;
    },
    async publish(records, options) {
      if (records.length === 0) return broker.publish(records, options);
      const values = records.map(({ value }) => value);
      if ((await reach('claimed', values)) === 'refuse') return refuseAll(records);
      const results = await broker.publish(records, options);
      await reach('published', values);
      return results;
    },
  };
}

function refuseAll(records: readonly OutgoingRecord[]): readonly PublishResult[] {
  const refused = {
    result: 'failed',
    fault: 'record',
    retriable: false,
    code: 'MESSAGE_TOO_LARGE',
    message: 'too large',
  } as const;
  return records.map(() => refused);
}

function faultyDatabase(db: Database, reach: Reach, claimsWaitForSettle: boolean): Database {
  const settled = Promise.withResolvers<void>();
  let claims = 0;
  return {
    ...db,
    async query<Row>(statement: Sql): Promise<readonly Row[]> {
      if (claimsWaitForSettle && isClaim(statement) && (claims += 1) > 1) await settled.promise;
      if (isOrderSettle(statement)) await reach('order_answered');
      if (isSagaSettle(statement)) await reach('saga_settling');
      if (isAct(statement)) await reach('act_recording');
      const rows = await db.query<Row>(statement);
      if (isAct(statement)) await reach('act_committed');
      if (isSagaClaim(statement) && rows.length > 0) await reach('saga_claimed');
      if (isSagaSettle(statement)) await reach('saga_settled');
      if (isSettle(statement)) {
        settled.resolve();
        await reach('settled');
      }
      if (isOrderClaim(statement) && rows.length > 0) await reach('order_claimed', requestsIn(rows));
      if (isOrderSettle(statement)) await reach('order_settled');
      return rows;
    },
    async transaction(work, options) {
      let settlesOrders = false;
      let makesRound = false;
      let records = false;
      let seals = false;
      const value = await db.transaction(
        (tx) =>
          work({
            async query<Row>(statement: Sql): Promise<readonly Row[]> {
              if (isOrderSettle(statement)) {
                settlesOrders = true;
                await reach('order_answered');
              }
              if (isAct(statement)) await reach('act_recording');
              const rows = await tx.query<Row>(statement);
              if (isAct(statement)) {
                records = true;
                await reach('act_recorded');
              }
              if (isSeal(statement)) {
                seals = true;
                await reach('seal_stored');
              } else if (seals && isAnchor(statement)) await reach('seal_anchored');
              if (isInsert(statement)) await reach('inserted');
              if (isPlan(statement)) await reach('planning');
              if (isRound(statement)) {
                makesRound = true;
                await reach('round_made');
              }
              return rows;
            },
          } satisfies Queryable),
        options,
      );
      if (settlesOrders) await reach('order_settled');
      if (makesRound) await reach('round_noted');
      if (records) await reach('act_committed');
      if (seals) await reach('seal_committed');
      return value;
    },
  };
}

const isClaim = ({ text }: Sql): boolean => text.includes("'retry_started'");
const isInsert = ({ text }: Sql): boolean => text.includes('INSERT INTO dlq.dlq_messages');
const isRound = ({ text }: Sql): boolean => text.includes('INSERT INTO dlq.redrives ');
const isPlan = ({ text }: Sql): boolean => text.includes('INSERT INTO dlq.redrive_items');
const isSettle = ({ text }: Sql): boolean =>
  text.includes('WITH settled AS') && text.includes('dlq.dlq_messages');

const isAct = ({ text }: Sql): boolean => text.includes('INSERT INTO audit.events');
const isSeal = ({ text }: Sql): boolean => text.includes('INSERT INTO audit.seals');
const isAnchor = ({ text }: Sql): boolean => text.includes('INSERT INTO outbox.outbox_orders');

const isOrderClaim = ({ text }: Sql): boolean => text.includes("SET status = 'sending', first_sent_at");
const isOrderSettle = ({ text }: Sql): boolean =>
  text.includes('WITH settled AS') && text.includes('outbox.outbox_orders');

const isSagaClaim = ({ text }: Sql): boolean =>
  text.includes('claimed AS') && text.includes('saga.saga_states');
const isSagaSettle = ({ text }: Sql): boolean =>
  text.includes('WITH settled AS') && text.includes('saga.saga_states');

function requestsIn(rows: readonly unknown[]): readonly string[] {
  return rows.map((row) => (row as { request: string }).request);
}
