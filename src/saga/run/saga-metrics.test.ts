import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stepOf } from '../../../tests/support/saga-engine.ts';
import { createLogger } from '../../platform/telemetry/logger.ts';
import { createMetrics } from '../../platform/telemetry/metrics.ts';
import type { Attempt, SagaState } from '../domain/saga-state.ts';
import { newSaga } from '../../../tests/support/saga-model/new-saga.ts';
import { nextAttempt } from '../domain/step-log.ts';
import { createSagaMetrics, type Settled } from './saga-metrics.ts';
import { createWorkflowLabels } from './workflow-labels.ts';

const workflow = { name: 'order', deadlineMs: null, steps: [stepOf('reserve'), stepOf('ship')] };
const id = '3f0c0c9e-0000-4000-8000-000000000001';
const begin = 1_000_000;

function open() {
  const metrics = createMetrics();
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    service: 'test',
    version: '0',
    environment: 'test',
    level: 'info',
    stream: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const counts = createSagaMetrics(metrics, log, () => begin + 2000);
  return {
    lines,
    settle: (before: Partial<SagaState>, after: Partial<SagaState>, more: Partial<Settled> = {}) => {
      const state = { ...newSaga(begin, null), ...before };
      const written = { state: { ...state, ...after }, changed: [], events: [], ...more };
      counts.settled({ id, workflow, state }, written);
    },
    samples: async () =>
      (await metrics.render())
        .split('\n')
        .filter((line) => line.startsWith('saga_') && !line.includes('_bucket')),
  };
}

const opened: Attempt = nextAttempt([], 0, 'EXECUTE', begin);

test('a saga counts as started once, with the settle that says so, and as finished with its end', async () => {
  const at = open();
  at.settle({}, { status: 'STARTED' });
  at.settle({}, { status: 'RUNNING' }, { events: ['SAGA_STARTED', 'SAGA_RUNNING'] });
  at.settle({ status: 'RUNNING' }, { status: 'RUNNING' });
  at.settle({ status: 'RUNNING' }, { status: 'COMPLETED' }, { events: ['SAGA_COMPLETED'] });
  assert.deepEqual(await at.samples(), [
    'saga_started_total{workflow="order"} 1',
    'saga_finished_total{workflow="order",status="COMPLETED"} 1',
  ]);
  assert.deepEqual(at.lines, [], 'what goes well is not worth a line');
});

test('an attempt that is closed tells how long it was open; one that a person marks tells nothing', async () => {
  const at = open();
  const closed: Attempt = { ...opened, status: 'SUCCESS', answer: 'done' };
  at.settle({ status: 'RUNNING', log: [opened] }, {}, { changed: [closed] });
  at.settle({ status: 'RUNNING', log: [closed] }, {}, { changed: [{ ...closed, isLast: true }] });
  assert.deepEqual(await at.samples(), [
    'saga_step_duration_seconds_sum{workflow="order",step="reserve",action="EXECUTE"} 2',
    'saga_step_duration_seconds_count{workflow="order",step="reserve",action="EXECUTE"} 1',
  ]);
});

test('a saga that ends FAILED and one that needs attention are logged with their ids', () => {
  const at = open();
  const stuck = { step: 1, op: 'COMPENSATE' as const, reason: 'already shipped' };
  at.settle({ status: 'RUNNING' }, { status: 'COMPENSATING', stuck });
  at.settle({ status: 'COMPENSATING', stuck }, { status: 'COMPENSATING', stuck });
  at.settle({ status: 'COMPENSATING' }, { status: 'FAILED', errorMessage: `ship: ${'no '.repeat(1000)}` });
  at.settle({ status: 'COMPENSATING' }, { status: 'CANCELLED', errorMessage: 'cancelled by ops' });
  assert.equal(at.lines.length, 2);
  const [needs, failed] = at.lines;
  assert.deepEqual(
    [
      needs?.['msg'],
      needs?.['saga_id'],
      needs?.['workflow'],
      needs?.['step'],
      needs?.['action'],
      needs?.['error'],
    ],
    ['saga needs attention', id, 'order', 'ship', 'COMPENSATE', 'already shipped'],
  );
  assert.deepEqual([failed?.['saga_id'], failed?.['level'], needs?.['level']], [id, 'info', 'warn']);
  assert.match(String(failed?.['msg']), /^saga FAILED/);
  assert.equal(String(failed?.['error']).length, 1000);
});

test('whoever registers workflows without end makes no time series without end', () => {
  const labels = createWorkflowLabels({ maxWorkflows: 2, maxSteps: 3 });
  assert.deepEqual(
    ['a', 'b', 'c', 'a'].map((name) => labels.workflow(name)),
    ['a', 'b', 'other', 'a'],
  );
  assert.deepEqual(labels.step('c', 'one'), { workflow: 'other', step: 'other' });
  for (const step of ['one', 'two', 'three']) assert.equal(labels.step('a', step).step, step);
  assert.deepEqual(labels.step('a', 'four'), { workflow: 'a', step: 'other' });
  assert.deepEqual(labels.step('b', 'one'), { workflow: 'b', step: 'other' });
  assert.deepEqual(labels.step('a', 'two'), { workflow: 'a', step: 'two' });
});
