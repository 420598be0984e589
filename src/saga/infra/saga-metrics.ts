import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { isTerminal, type SagaState } from '../domain/saga-state.ts';
import type { HeldSaga, SagaSettle } from '../usecase/ports.ts';
import { createWorkflowLabels } from './workflow-labels.ts';

/** What a settle has changed, as far as it is counted. */
export type Settled = Pick<SagaSettle, 'state' | 'changed' | 'events'>;

/**
 * Counts what this process writes down, and logs what somebody may have to look at. `before` is the saga as it stood.
 * A saga counts as started with its first settle, because whoever begins one in SQL passes no process of ours.
 */
export type SagaMetrics = Readonly<{
  settled(before: Pick<HeldSaga, 'id' | 'workflow' | 'state'>, after: Settled): void;
}>;

const maxLogged = 1000;

export function createSagaMetrics(
  metrics: Metrics,
  log: Logger,
  /** On the database's clock, as the starts of attempts are. */
  now: () => number,
): SagaMetrics {
  const labels = createWorkflowLabels();
  const started = metrics.counter({
    name: 'saga_started_total',
    help: 'Sagas whose first settle this process has written.',
    labelNames: ['workflow'],
  });
  const finished = metrics.counter({
    name: 'saga_finished_total',
    help: 'Sagas whose end this process has written, by how they ended.',
    labelNames: ['workflow', 'status'],
  });
  const duration = metrics.histogram({
    name: 'saga_step_duration_seconds',
    help: 'Time from the opening of an attempt to its end, whatever came of it, with the polls of one that works on.',
    labelNames: ['workflow', 'step', 'action'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800],
  });

  return {
    settled(before, { state, changed, events }) {
      const { id, workflow } = before;
      const label = labels.workflow(workflow.name);
      if (events.includes('SAGA_STARTED')) started.inc({ workflow: label });
      for (const { step, op, attempt, startedAt, status } of changed) {
        const isClosed = status !== null && isOpen(before.state, { step, op, attempt });
        if (!isClosed) continue;
        const seconds = Math.max(0, now() - startedAt) / 1000;
        duration.observe(
          { ...labels.step(workflow.name, workflow.steps[step]?.name ?? ''), action: op },
          seconds,
        );
      }
      const about = { saga_id: id, workflow: workflow.name };
      if (isTerminal(state.status) && !isTerminal(before.state.status)) {
        finished.inc({ workflow: label, status: state.status });
        const error = state.errorMessage?.slice(0, maxLogged);
        if (state.status === 'FAILED')
          log.warn({ ...about, error }, 'a saga has ended FAILED: all is undone');
      }
      const { stuck } = state;
      if (stuck === null || before.state.stuck !== null) return;
      const step = workflow.steps[stuck.step]?.name;
      const error = stuck.reason.slice(0, maxLogged);
      log.warn({ ...about, step, action: stuck.op, error }, 'a saga needs a person');
    },
  };
}

type Which = Pick<SagaState['log'][number], 'step' | 'op' | 'attempt'>;

/** A row that a person marks as tried again was closed before. */
function isOpen({ log }: SagaState, { step, op, attempt }: Which): boolean {
  return log.some(
    (row) => row.step === step && row.op === op && row.attempt === attempt && row.status === null,
  );
}
