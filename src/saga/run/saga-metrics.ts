import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { isTerminal, type SagaState } from '../domain/saga-state.ts';
import type { LeasedSaga } from './leased-sagas.ts';
import type { SagaSettle } from '../write-sagas.ts';
import { createWorkflowLabels } from './workflow-labels.ts';

/** The part of a settle that is counted. */
export type Settled = Pick<SagaSettle, 'state' | 'changed' | 'events'>;

/**
 * Counts what this process settles, and logs what may need attention. `before` is the saga before the settle. A saga is
 * counted as started with its first settle, because it may have been started in SQL.
 */
export type SagaMetrics = Readonly<{
  settled(before: Pick<LeasedSaga, 'id' | 'workflow' | 'state'>, after: Settled): void;
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
    help: 'Sagas that this process has ended, by status.',
    labelNames: ['workflow', 'status'],
  });
  const duration = metrics.histogram({
    name: 'saga_step_duration_seconds',
    help: 'Time from the start of an attempt to its end, including polls, whatever its outcome.',
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
        // Everything is undone, so nobody is needed.
        if (state.status === 'FAILED') log.info({ ...about, error }, 'saga FAILED after undoing its steps');
      }
      const { stuck } = state;
      if (stuck === null || before.state.stuck !== null) return;
      const step = workflow.steps[stuck.step]?.name;
      const error = stuck.reason.slice(0, maxLogged);
      log.warn({ ...about, step, action: stuck.op, error }, 'saga needs attention');
    },
  };
}

type Which = Pick<SagaState['log'][number], 'step' | 'op' | 'attempt'>;

/** A row that an operator marks as retried was closed before. */
function isOpen({ log }: SagaState, { step, op, attempt }: Which): boolean {
  return log.some(
    (row) => row.step === step && row.op === op && row.attempt === attempt && row.status === null,
  );
}
