import type { FastifyRequest } from 'fastify';
import { actorOf } from '../../platform/http/actor.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { traceparentOf } from '../../platform/http/traceparent.ts';
import { cancelOrder, skipOrder, supersedeOrder, type ActionDeps } from '../usecase/act-on-order.ts';
import { parseOrderId, type ToldOrder } from '../usecase/find-order.ts';
import type { OrderAction } from '../usecase/ports.ts';
import { requireSameKey } from './idempotency-header.ts';
import { presentCorrection, presentToldOrder } from './present.ts';
import { root } from './root.ts';
import * as schemas from './schemas.ts';

/** What a person decides about an order. */
export function addActionRoutes(app: HttpApp, deps: ActionDeps): void {
  const addDecision = (
    name: string,
    summary: string,
    decide: (deps: ActionDeps, action: OrderAction) => Promise<ToldOrder>,
  ): void => {
    app.post(
      `${root}/orders/:id/${name}`,
      {
        config: { exactJson: true },
        schema: {
          summary,
          params: schemas.IdParams,
          body: schemas.DecisionBody,
          response: { 200: schemas.ToldOrderSchema },
        },
      },
      async (request, reply) => {
        const action = actionOf(request, request.params.id, request.body ?? {});
        return reply.send(presentToldOrder(await decide(deps, action)));
      },
    );
  };
  addDecision('cancel', 'Call off an order that has not been sent', cancelOrder);
  addDecision('skip', 'Go on without a dead order: those behind it are no longer held back', skipOrder);

  app.post(
    `${root}/orders/:id/supersede`,
    {
      config: { exactJson: true },
      schema: {
        summary: 'Put a corrected order in the place of a dead one',
        params: schemas.IdParams,
        headers: schemas.KeyHeaders,
        body: schemas.SupersedeBody,
        response: { 200: schemas.CorrectionSchema, 201: schemas.CorrectionSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      requireSameKey(request.headers, body.idempotency_key);
      const action = actionOf(request, request.params.id, body);
      const { outcome, answer } = await supersedeOrder(deps, action, {
        idempotencyKey: body.idempotency_key,
        request: body.request as Readonly<Record<string, unknown>>,
        traceId: body.trace_id ?? null,
        traceparent: traceparentOf(request),
      });
      const told = presentCorrection(answer, action.id);
      if (outcome === 'replayed') return reply.header('idempotent-replayed', 'true').send(told);
      return reply.code(201).send(told);
    },
  );
}

type Decision = Readonly<{ reason?: string | undefined; effect_checked?: boolean | undefined }>;

function actionOf(request: Pick<FastifyRequest, 'headers'>, id: string, decision: Decision): OrderAction {
  return {
    id: parseOrderId(id),
    actor: actorOf(request),
    reason: decision.reason ?? null,
    effectChecked: decision.effect_checked === true,
  };
}
