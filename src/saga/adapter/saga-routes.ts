import { encodeCursor, paginationOf, readPage, type PageQuery, type PageRequest } from '../../kernel/page.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { traceparentOf } from '../../platform/http/traceparent.ts';
import { getSaga } from '../usecase/find-saga.ts';
import { listSagas, type ListPage } from '../usecase/list-sagas.ts';
import type { SagaFilter, SagaReader } from '../usecase/reading-ports.ts';
import { startSaga, type StartDeps } from '../usecase/start-saga.ts';
import { invalidInput } from './invalid-input.ts';
import { presentSaga, presentToldSaga } from './present-saga.ts';
import { readIdempotencyKey, readSagaId } from './read-request.ts';
import * as schemas from './schemas.ts';

export type SagaRouteDeps = StartDeps & Readonly<{ reader: SagaReader }>;

const root = '/api/v1/sagas';

/** Starting sagas, and looking at them. */
export function addSagaRoutes(app: HttpApp, deps: SagaRouteDeps): void {
  addStartRoute(app, deps);

  app.get(
    root,
    {
      schema: {
        summary: 'Sagas, newest first',
        querystring: schemas.SagaListQuery,
        response: { 200: schemas.SagaListSchema },
      },
    },
    async ({ query }, reply) => {
      const filter = {
        workflowName: query.workflow_name,
        status: query.status,
        correlationId: query.correlation_id,
        needsPerson: query.needs_person,
      };
      return reply.send(await listPage(deps.reader, filter, query));
    },
  );

  app.get(
    `${root}/:saga_id`,
    {
      schema: {
        summary: 'One saga with every attempt at its steps, archived or not',
        params: schemas.SagaParams,
        response: { 200: schemas.ToldSagaSchema },
      },
    },
    async ({ params }, reply) =>
      reply.send(presentToldSaga(await getSaga(deps.reader, readSagaId(params.saga_id)))),
  );
}

function addStartRoute(app: HttpApp, deps: StartDeps): void {
  app.post(
    root,
    {
      config: { exactJson: true },
      schema: {
        summary: 'Start a saga; with a key that was used before, the saga that it started is the answer',
        headers: schemas.KeyHeaders,
        body: schemas.NewSagaBody,
        response: { 200: schemas.StartedSchema, 201: schemas.StartedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const { sagaId, isReplayed } = await startSaga(deps, {
        workflowName: body.workflow_name,
        // Its numbers were found to be what a double is, so nothing is lost by writing them anew.
        payloadText: body.payload === undefined ? null : JSON.stringify(body.payload),
        correlationId: body.correlation_id ?? null,
        initiatedBy: body.initiated_by ?? null,
        key: readIdempotencyKey(request.headers),
        trace: traceparentOf(request),
      });
      // The first answer again, whatever has become of the saga since.
      const answer = { saga_id: sagaId, status: 'STARTED' };
      if (isReplayed) return reply.header('idempotent-replayed', 'true').send(answer);
      return reply.code(201).send(answer);
    },
  );
}

async function listPage(
  reader: SagaReader,
  filter: SagaFilter,
  { page: number, page_size, cursor }: PageQuery,
): Promise<object> {
  const page = readPage({ page: number, page_size, cursor });
  if (page === null) throw invalidInput('cursor', 'invalid', 'must be one of ours');
  const { sagas, count, hasNext } = await listSagas(reader, filter, listPageOf(page));
  const last = sagas.at(-1);
  const next = hasNext && last !== undefined ? encodeCursor([last.createdAtExact, last.sagaId]) : null;
  return {
    sagas: sagas.map(presentSaga),
    pagination: paginationOf({
      total: count.total,
      isEstimate: count.isEstimate,
      page: page.page,
      pageSize: page.pageSize,
      hasNext,
      ...(page.by === 'keyset' ? { nextCursor: next } : {}),
    }),
  };
}

function listPageOf(page: PageRequest): ListPage {
  if (page.by === 'number') return page;
  const [createdAt, sagaId] = page.after ?? [];
  const isFirst = createdAt === undefined || sagaId === undefined;
  return { ...page, after: isFirst ? null : { createdAt, sagaId } };
}
