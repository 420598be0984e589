import type { Database } from '../../../src/platform/postgres/database.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import type { AnswerClass, LogStatus, Op, Status } from '../../../src/saga/domain/saga-state.ts';

/**
 * What has happened to sagas, in the order of the commits: triggers of the test write it down in the transaction of
 * what they see. Clocks do not say it, for every replica has its own.
 */
export type SagaDeed = Readonly<{ sagaId: string }> &
  (
    | Readonly<{ what: 'status'; from: Status; to: Status }>
    | Readonly<{ what: 'aborted' }>
    | Readonly<{ what: 'epoch_fell' }>
    | (Readonly<{ what: 'opened' | 'written' | 'closed' | 'rewritten' | 'deleted' }> & LoggedAttempt)
  );

export type LoggedAttempt = Readonly<{
  step: number;
  op: Op;
  attempt: number;
  status: LogStatus | null;
  answer: AnswerClass | null;
  isUnsent: boolean;
  isByHand: boolean;
}>;

/** `opened` is an attempt without an end, `written` one that is closed at once, `rewritten` one that was closed before. */
export async function keepSagaHistory(db: Database): Promise<void> {
  const statements = [
    sql`CREATE SCHEMA chaos`,
    sql`
      CREATE TABLE chaos.saga_history (
        no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        tx xid8 NOT NULL DEFAULT pg_current_xact_id(), saga_id uuid NOT NULL, what text NOT NULL,
        status_from text, status_to text, step int, op text, attempt int, status text, answer text,
        is_unsent boolean, is_by_hand boolean)`,
    sql`
      CREATE FUNCTION chaos.note_saga() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF NEW.status <> OLD.status THEN
          INSERT INTO chaos.saga_history (saga_id, what, status_from, status_to)
          VALUES (NEW.id, 'status', OLD.status, NEW.status);
        END IF;
        IF NEW.abort_requested IS DISTINCT FROM OLD.abort_requested THEN
          INSERT INTO chaos.saga_history (saga_id, what) VALUES (NEW.id, 'aborted');
        END IF;
        IF NEW.lease_epoch < OLD.lease_epoch THEN
          INSERT INTO chaos.saga_history (saga_id, what) VALUES (NEW.id, 'epoch_fell');
        END IF;
        RETURN NULL;
      END $$`,
    sql`
      CREATE FUNCTION chaos.note_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
      DECLARE
        v_row saga.saga_step_logs := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
        v_what text := CASE
          WHEN TG_OP = 'DELETE' THEN 'deleted'
          WHEN TG_OP = 'INSERT' AND NEW.status IS NULL THEN 'opened'
          WHEN TG_OP = 'INSERT' THEN 'written'
          WHEN OLD.status IS NULL THEN 'closed'
          WHEN ROW (OLD.status, OLD.answer, OLD.is_unsent, OLD.response_payload)
               IS DISTINCT FROM ROW (NEW.status, NEW.answer, NEW.is_unsent, NEW.response_payload) THEN 'rewritten'
          END;
      BEGIN
        IF v_what IS NOT NULL THEN
          INSERT INTO chaos.saga_history
            (saga_id, what, step, op, attempt, status, answer, is_unsent, is_by_hand)
          VALUES (v_row.saga_id, v_what, v_row.step_index, v_row.action, v_row.attempt, v_row.status, v_row.answer,
                  v_row.is_unsent, v_row.actor IS NOT NULL);
        END IF;
        RETURN NULL;
      END $$`,
    sql`
      CREATE TRIGGER note_saga AFTER UPDATE ON saga.saga_states
      FOR EACH ROW EXECUTE FUNCTION chaos.note_saga()`,
    sql`
      CREATE TRIGGER note_attempt AFTER INSERT OR UPDATE OR DELETE ON saga.saga_step_logs
      FOR EACH ROW EXECUTE FUNCTION chaos.note_attempt()`,
  ];
  for (const statement of statements) await db.query(statement);
}

/** What one transaction does has no order of its own: there an end comes before what follows from it. */
export async function readSagaHistory(db: Database): Promise<ReadonlyMap<string, readonly SagaDeed[]>> {
  const deeds = await db.query<SagaDeed>(sql`
    SELECT saga_id AS "sagaId", what, status_from AS "from", status_to AS "to", step, op, attempt, status, answer,
           is_unsent AS "isUnsent", is_by_hand AS "isByHand"
    FROM (SELECT *, min(no) OVER (PARTITION BY saga_id, tx) AS first_no FROM chaos.saga_history) AS history
    ORDER BY first_no, what IN ('opened', 'written'), what = 'opened', what = 'status', no`);
  return Map.groupBy(deeds, ({ sagaId }) => sagaId);
}
