import type { HttpApp } from '../../platform/http/http-app.ts';
import { addIdPrefixRoute } from '../../platform/http/id-prefix-route.ts';
import { addListRoute } from '../../platform/http/list-route.ts';
import { findIds, type TableWithIds } from '../../platform/postgres/find-ids.ts';
import { statuses } from '../domain/saga-state.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { readSagaId, sagaScope } from '../read-saga-id.ts';
import { throwNotFound } from '../saga-errors.ts';
import { SagaParams } from '../schemas.ts';
import { SagaListQuery, SagaListSchema, SagaWithStepsSchema } from './browse-schemas.ts';
import { findSaga, presentWithSteps, sagaBytes } from './find-saga.ts';
import { listSagas } from './list-sagas.ts';
import { presentSaga } from './saga-view.ts';

const root = '/api/v1/sagas';

const tables: readonly TableWithIds[] = [
  { table: sql`saga.saga_states`, id: sql`id`, isArchive: false, name: sql`t.workflow_name` },
  { table: sql`saga.saga_states_archive`, id: sql`id`, isArchive: true, name: sql`t.workflow_name` },
];

/** More than a row of a list usually takes. */
const listedRowBytes = 24_000;

export function addSagaRoutes(app: HttpApp, db: Database): void {
  addListRoute(app, {
    slice: 'saga',
    path: root,
    access: { permission: 'saga:sagas:view', scope: { by: 'workflows', in: 'list' } },
    operationId: 'listSagas',
    summary: 'List sagas, newest first',
    description:
      'Filters by workflow, status, correlation id, fingerprint and `needs_attention`. Use `page` for the first pages and `cursor` for deep or changing lists.',
    query: SagaListQuery,
    answer: SagaListSchema,
    items: 'sagas',
    rowBytes: listedRowBytes,
    async list(query, page, _request, names) {
      const filter = {
        workflowName: query.workflow_name,
        status: query.status,
        correlationId: query.correlation_id,
        fingerprint: query.fingerprint,
        needsAttention: query.needs_attention,
        names,
      };
      const { sagas, ...listed } = await listSagas(db, filter, page);
      return { items: sagas, ...listed };
    },
    keyOf: ({ createdAtExact, sagaId }) => [createdAtExact, sagaId],
    present: presentSaga,
  });

  addIdPrefixRoute(app, {
    slice: 'saga',
    path: `${root}/ids`,
    access: { permission: 'saga:sagas:view', scope: { by: 'workflows', in: 'list' } },
    operationId: 'findSagaIds',
    items: 'sagas',
    statuses,
    find: (range, limit, names) => findIds(db, tables, range, { limit, names }),
  });

  app.get(
    `${root}/:saga_id`,
    {
      config: { access: { permission: 'saga:sagas:view', scope: sagaScope(db) } },
      schema: {
        operationId: 'getSaga',
        summary: 'Get one saga with all attempts at its steps',
        description: 'Finds live and archived sagas.',
        errors: [404],
        params: SagaParams,
        response: { 200: SagaWithStepsSchema },
      },
    },
    async (request, reply) => {
      const sagaId = readSagaId(request.params.saga_id);
      await request.reserveAnswer(await sagaBytes(db, sagaId));
      const found = await findSaga(db, sagaId);
      return reply.send(presentWithSteps(found ?? throwNotFound(`saga not found: saga_id=${sagaId}`)));
    },
  );
}
