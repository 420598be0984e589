import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { noMasks } from '../../kernel/protect/protection.ts';
import { formatInstant } from '../../kernel/timestamp.ts';
import { namesFor, ownFor } from '../../platform/http/access/guard-access.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import { addRevealRoute } from '../../platform/http/access/reveal-route.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { addIdPrefixRoute } from '../../platform/http/id-prefix-route.ts';
import { addListRoute } from '../../platform/http/list-route.ts';
import { readInstantField } from '../../platform/http/slice-input.ts';
import { findIds, type TableWithIds } from '../../platform/postgres/find-ids.ts';
import { statuses } from '../domain/saga-state.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { readSagaId, sagaScope, viewSagas } from '../read-saga-id.ts';
import { throwNotFound } from '../saga-errors.ts';
import { isSagaOf } from '../saga-table.ts';
import { SagaParams } from '../schemas.ts';
import {
  SagaFacetsSchema,
  SagaFilterQuery,
  SagaListQuery,
  SagaListSchema,
  SagaWithStepsSchema,
} from './browse-schemas.ts';
import { countFacets, type Facets } from './count-facets.ts';
import { findSaga, findSagaIn, presentWithSteps, sagaBytes } from './find-saga.ts';
import { listSagas, type SagaFilter } from './list-sagas.ts';
import { presentSteps, readSteps } from './saga-steps.ts';
import { presentSaga, type Json } from './saga-view.ts';

const root = '/api/v1/sagas';

const tables: readonly TableWithIds[] = [
  { table: sql`saga.saga_states`, id: sql`id`, isArchive: false, name: sql`t.workflow_name`, isOf: isSagaOf },
  {
    table: sql`saga.saga_states_archive`,
    id: sql`id`,
    isArchive: true,
    name: sql`t.workflow_name`,
    isOf: isSagaOf,
  },
];

/** More than a row of a list usually takes. */
const listedRowBytes = 24_000;

export type SagaRouteDeps = Readonly<{ db: Database; masking: PayloadMasks }>;

export function addSagaRoutes(app: HttpApp, deps: SagaRouteDeps): void {
  const { db, masking } = deps;
  addListRoute(app, {
    slice: 'saga',
    path: root,
    access: { ...viewSagas, scope: { by: 'workflows', in: 'list' } },
    operationId: 'listSagas',
    summary: 'List sagas, newest first',
    description:
      'Shows the sagas for which all filters hold. Use `page` for the first pages and `cursor` for deep or changing lists.',
    query: SagaListQuery,
    answer: SagaListSchema,
    items: 'sagas',
    rowBytes: masking.answerBytes(listedRowBytes),
    require: (query, request) => requireFilter(masking, query, request),
    async list(query, page, request, names) {
      const filter = { ...filterOf(query), names, own: ownFor(request) };
      const { sagas, asOf, ...listed } = await listSagas(db, filter, page);
      const { fields } = query;
      const steps = fields?.includes('steps') === false ? new Map() : await readSteps(db, sagas);
      const items = sagas.map((saga) => ({ saga, steps: steps.get(saga.sagaId) }));
      return { items, ...listed, more: { as_of: formatInstant(asOf) } };
    },
    keyOf: ({ saga: { createdAtExact, sagaId } }) => [createdAtExact, sagaId],
    present: ({ saga, steps }, { fields }, request) => {
      const shown = presentSaga(saga, masking.ofAdded(request, saga.workflowName, saga.createdBy));
      return withFields({ ...shown, steps: presentSteps(steps) }, fields);
    },
  });
  addFacetsRoute(app, deps);
  addSagaDetails(app, deps);

  addIdPrefixRoute(app, {
    slice: 'saga',
    path: `${root}/ids`,
    access: { ...viewSagas, scope: { by: 'workflows', in: 'list' } },
    operationId: 'findSagaIds',
    items: 'sagas',
    statuses,
    find: (range, limit, names, own) => findIds(db, tables, range, { limit, names, own }),
  });
}

function addSagaDetails(app: HttpApp, deps: SagaRouteDeps): void {
  const { db, masking } = deps;
  addRevealRoute(app, deps, {
    path: `${root}/:saga_id/reveal`,
    permission: 'saga:payloads:view',
    scope: sagaScope(db),
    operationId: 'revealSaga',
    what: 'a saga',
    params: SagaParams,
    answer: SagaWithStepsSchema,
    idOf: ({ saga_id: id }) => readSagaId(id),
    measure: (sagaId) => sagaBytes(db, sagaId),
    async find(tx, sagaId) {
      const found = (await findSagaIn(tx, sagaId)) ?? throwNotFound(`saga not found: saga_id=${sagaId}`);
      return {
        resource: `saga/sagas/${sagaId}`,
        names: { workflows: [found.saga.workflowName] },
        shown: presentWithSteps(found, noMasks),
      };
    },
  });
  app.get(
    `${root}/:saga_id`,
    {
      config: { access: { ...viewSagas, scope: sagaScope(db) } },
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
      await request.reserveAnswer(masking.answerBytes(await sagaBytes(db, sagaId)));
      const found = (await findSaga(db, sagaId)) ?? throwNotFound(`saga not found: saga_id=${sagaId}`);
      const { workflowName, createdBy } = found.saga;
      return reply.send(presentWithSteps(found, masking.ofAdded(request, workflowName, createdBy)));
    },
  );
}

const facetBytes = 100_000;

function addFacetsRoute(app: HttpApp, { db, masking }: SagaRouteDeps): void {
  app.get(
    `${root}/facets`,
    {
      config: { access: { ...viewSagas, scope: { by: 'workflows', in: 'list' } } },
      schema: {
        operationId: 'countSagaFacets',
        summary: 'Count sagas by status, workflow, step and the service that they wait for',
        description:
          'Shows the 20 most frequent values of each field among the sagas for which all filters hold. Exact up to 10 000 matches; beyond that the newest 10 000 are scaled.',
        querystring: SagaFilterQuery,
        response: { 200: SagaFacetsSchema },
      },
    },
    async (request, reply) => {
      requireFilter(masking, request.query, request);
      await request.reserveAnswer(facetBytes);
      const filter = { ...filterOf(request.query), names: namesFor(request), own: ownFor(request) };
      return reply.send(presentFacets(await countFacets(db, filter)));
    },
  );
}

function presentFacets({ count, sampled, needsAttention, facets, asOf }: Facets): Json {
  return {
    total_count: count.total,
    ...(count.isEstimate ? { total_is_estimate: true } : {}),
    ...(sampled === null ? {} : { sampled }),
    needs_attention: needsAttention,
    facets: Object.fromEntries(facets),
    as_of: formatInstant(asOf),
  };
}

/** Whether something matches would tell whether a guess of what is covered is right. */
function requireFilter(
  masking: PayloadMasks,
  asked: Readonly<{ key?: string | undefined; correlation_id?: string | undefined }>,
  request: FastifyRequest,
): void {
  masking.requireVisible(request, 'key', asked.key, 'key');
  masking.requireVisible(request, 'correlation_id', asked.correlation_id, 'key');
}

function filterOf(query: Static<typeof SagaFilterQuery>): SagaFilter {
  return {
    workflowName: query.workflow_name,
    statuses: query.status,
    step: query.step,
    startKey: query.key,
    correlationId: query.correlation_id,
    definitionHash: query.definition_hash,
    waitingFor: query.waiting_for,
    fingerprint: query.fingerprint,
    needsAttention: query.needs_attention,
    since: readInstantField('saga', 'since', query.since),
    until: readInstantField('saga', 'until', query.until),
  };
}

/** The id is always there: without it a row could not be named. */
function withFields(saga: Json, fields: readonly string[] | undefined): Json {
  if (fields === undefined) return saga;
  return Object.fromEntries(
    Object.entries(saga).filter(([name]) => name === 'saga_id' || name === 'masked' || fields.includes(name)),
  );
}
