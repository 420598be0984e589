import { expect, test } from 'vitest';
import type { Saga, SagaStep } from '../../lib/server-shapes.ts';
import { describeSituation } from './describe-situation.ts';
import { orderedLog, type LogRow } from './use-saga.ts';

const step = (name: string, state: SagaStep['state']): SagaStep => ({
  name,
  state,
  service: 'shop',
  method: `POST /${name}`,
  compensate: `POST /undo-${name}`,
  pivot: false,
});

const saga = (more: Partial<Saga>): Saga => ({
  saga_id: '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
  workflow_name: 'place-order',
  current_step: 1,
  status: 'RUNNING',
  payload: null,
  correlation_id: null,
  initiated_by: null,
  created_by: null,
  error_message: null,
  created_at: null,
  updated_at: null,
  compensation: 'none',
  needs_attention: false,
  deadline_at: null,
  definition_hash: null,
  fingerprint: null,
  next_attempt_at: null,
  pivot_opened: false,
  trace_id: null,
  steps: [step('reserve', 'done'), step('charge', 'running'), step('ship', 'not_started')],
  ...more,
});

type Given = Partial<LogRow> &
  Pick<LogRow, 'step_index' | 'step_name' | 'action' | 'attempt' | 'status' | 'answer'>;

const log = (...rows: readonly Given[]): readonly LogRow[] =>
  orderedLog(
    rows.map((row, i) => ({
      id: String(i),
      saga_id: '',
      request_payload: null,
      response_payload: null,
      error_message: null,
      started_at: null,
      completed_at: null,
      updated_at: null,
      headers: {},
      fingerprint: null,
      ...row,
    })),
    { next_attempt_at: null },
  );

const reserved: Given = {
  step_index: 0,
  step_name: 'reserve',
  action: 'EXECUTE',
  attempt: 1,
  status: 'SUCCESS',
  answer: 'done',
};
const charge = (attempt: number, more: Partial<Given> = {}): Given => ({
  step_index: 1,
  step_name: 'charge',
  action: 'EXECUTE',
  attempt,
  status: 'TIMEOUT',
  answer: 'unknown',
  ...more,
});

test('a saga that runs says how far it is, and what it does', () => {
  expect(describeSituation(saga({ status: 'STARTED', current_step: 0 }), [])).toEqual([
    { say: 'notStarted' },
  ]);
  const calling = log(reserved, charge(1, { status: null, answer: null }));
  expect(describeSituation(saga({}), calling)).toEqual([
    { say: 'progress', done: 1, all: 3 },
    { say: 'calling', step: 'charge', isUndo: false },
  ]);
  const [done, open] = calling;
  const polled = describeSituation(
    saga({}),
    [done, open].flatMap((row) => (row === undefined ? [] : [{ ...row, isPolled: row === open }])),
  );
  expect(polled.at(-1)).toEqual({ say: 'polling', step: 'charge', isUndo: false });
  const failed = log(reserved, charge(1, { error_message: 'timed out' }));
  expect(describeSituation(saga({}), failed).at(-1)).toEqual({
    say: 'failed',
    step: 'charge',
    isUndo: false,
    attempts: 1,
    error: 'timed out',
  });
});

test('one that is stuck at an undo says what is undone, what is in doubt, and why it does not go on', () => {
  const undo = (attempt: number): Given => ({
    ...charge(attempt),
    action: 'COMPENSATE',
    status: 'FAILED',
    error_message: '503 from payment',
  });
  const stuck = saga({
    status: 'COMPENSATING',
    compensation: 'stuck',
    needs_attention: true,
    stuck: { step: 'charge', action: 'COMPENSATE', reason: '503 from payment' },
    steps: [step('reserve', 'undone'), step('charge', 'stuck'), step('ship', 'not_started')],
  });
  expect(describeSituation(stuck, log(reserved, charge(1), charge(2), undo(1), undo(2), undo(3)))).toEqual([
    { say: 'undoProgress', done: 2, all: 3 },
    { say: 'inDoubt', steps: ['charge'] },
    { say: 'stuck', step: 'charge', isUndo: true, attempts: 3, error: '503 from payment' },
  ]);
});

test('what was never sent, and what an answer has cleared up, is not in doubt', () => {
  const undoing = saga({ status: 'COMPENSATING', compensation: 'running' });
  const says = (rows: readonly LogRow[]) => describeSituation(undoing, rows).map(({ say }) => say);
  expect(says(log(reserved, charge(1)))).toContain('inDoubt');
  expect(says(log(reserved, charge(1, { headers: null })))).not.toContain('inDoubt');
  expect(says(log(reserved, charge(1), charge(2, { status: 'SUCCESS', answer: 'done' })))).not.toContain(
    'inDoubt',
  );
});

test('an end says whether somebody is needed', () => {
  const undone = log(reserved, { ...reserved, action: 'COMPENSATE' });
  const say = (more: Partial<Saga>, rows: readonly LogRow[]) => describeSituation(saga(more), rows)[0]?.say;
  expect(say({ status: 'COMPLETED' }, log(reserved))).toBe('completed');
  expect(say({ status: 'FAILED', compensation: 'done' }, undone)).toBe('undoneAll');
  expect(say({ status: 'FAILED', compensation: 'resolved' }, undone)).toBe('undoneByHand');
  expect(say({ status: 'FAILED' }, log(charge(1)))).toBe('failedUntouched');
  expect(say({ status: 'CANCELLED' }, undone)).toBe('cancelled');
  expect(say({ status: 'CANCELLED' }, [])).toBe('cancelledUntouched');
});
