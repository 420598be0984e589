import type { Logger } from '../../platform/telemetry/logger.ts';
import type { AbortDeps } from '../usecase/abort-saga.ts';
import type { ActDeps } from '../usecase/act-on-step.ts';
import type { SagaReader } from '../usecase/reading-ports.ts';
import type { RegisterDeps } from '../usecase/register-workflow.ts';
import type { StartDeps } from '../usecase/start-saga.ts';
import { createAskMethods, type Services } from './open-services.ts';
import { createPostgresSagaActions, type SagaActionDeps } from './postgres-saga-actions.ts';
import { createPostgresSagaReader } from './postgres-saga-reader.ts';
import { createPostgresStarts } from './postgres-start.ts';
import { createPostgresWorkflows } from './postgres-workflows.ts';

export type ActingDeps = Required<Pick<SagaActionDeps, 'db' | 'addEvents' | 'onSettled'>> &
  Readonly<{ log: Logger; services: Pick<Services, 'of'> }>;

/** What the routes work with. */
export type Acting = RegisterDeps & StartDeps & AbortDeps & ActDeps & Readonly<{ reader: SagaReader }>;

export function createActing({ db, log, services, addEvents, onSettled }: ActingDeps): Acting {
  const actions = createPostgresSagaActions({ db, serviceOf: services.of, addEvents, onSettled });
  return {
    workflows: createPostgresWorkflows(db),
    askMethods: createAskMethods(services),
    onRegistered: (registered) => log.info(registered, 'a workflow was registered'),
    starts: createPostgresStarts(db),
    reader: createPostgresSagaReader(db),
    aborts: actions,
    onAbort: ({ kind, sagaId, status, isStored, by: { actor, reason } }) =>
      log.info(
        { saga_id: sagaId, status, actor, reason, stored: isStored },
        kind === 'cancel' ? 'a saga is to be cancelled' : 'a saga is to be compensated',
      ),
    steps: actions,
    onActed: ({ sagaId, status, act: { kind, stepName, by } }) =>
      log.info(
        { saga_id: sagaId, step: stepName, action: kind, status, actor: by.actor, reason: by.reason },
        'a person has decided about a step',
      ),
  };
}
