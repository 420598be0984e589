import { trace } from '@opentelemetry/api';
import type { FastifyRequest } from 'fastify';
import type { Act } from '../../kernel/audit/act.ts';
import { readTraceContext } from '../telemetry/trace-context.ts';
import { actorOf } from './actor.ts';
import { clientAddressOf } from './client-address.ts';

/** Who acts by this request, for `recordAct`. The action is the permission that the route needs. */
export function actOf(request: FastifyRequest, reason: string | null = null): Act {
  const { principal, headers, id, method, routeOptions } = request;
  const { access } = routeOptions.config;
  return {
    actor: { type: principal.type, id: actorOf(request), name: principal.name, roles: principal.roles },
    action: typeof access === 'object' ? access.permission : `${method} ${routeOptions.url}`,
    reason,
    request: {
      id,
      traceId: (readTraceContext(headers) ?? trace.getActiveSpan()?.spanContext())?.traceId ?? null,
      address: clientAddressOf(request),
      agent: headers['user-agent'] ?? null,
    },
  };
}
