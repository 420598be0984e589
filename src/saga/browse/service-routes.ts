import type { Masks } from '../../kernel/protect/protection.ts';
import { formatInstant } from '../../kernel/timestamp.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { ServiceSettings } from '../domain/service-settings.ts';
import { ServiceListSchema } from './browse-schemas.ts';
import type { Json } from './saga-view.ts';

export type ServiceRouteDeps = Readonly<{
  db: Queryable;
  /** The services that are configured in this process. */
  services: ReadonlyMap<string, ServiceSettings>;
  masking: PayloadMasks;
}>;

export function addServiceRoutes(app: HttpApp, { db, services, masking }: ServiceRouteDeps): void {
  app.get(
    '/api/v1/services',
    {
      config: { access: { permission: 'saga:services:view' } },
      schema: {
        operationId: 'listServices',
        summary: 'List the services that workflows call',
        description: 'Shows which services are down, since when, and how many sagas wait for them.',
        response: { 200: ServiceListSchema },
      },
    },
    async (_request, reply) => {
      const known = new Map((await listCircuits(db)).map((circuit) => [circuit.service, circuit]));
      const listed = [...services.values()].map((each) =>
        presentService(each, known.get(each.name), masking.ofAny()),
      );
      return reply.send({ services: listed });
    },
  );
}

/** A service with a circuit or with waiting sagas. */
type ServiceCircuit = Readonly<{
  service: string;
  isOpen: boolean;
  since: Date | null;
  reason: string | null;
  probeAt: Date | null;
  /** How many sagas wait for it. */
  waiting: number;
}>;

function listCircuits(db: Queryable): Promise<readonly ServiceCircuit[]> {
  return db.query<ServiceCircuit>(sql`
    SELECT COALESCE(c.service, w.service) AS service, COALESCE(c.is_open, false) AS "isOpen",
           CASE WHEN c.is_open THEN c.since END AS since, CASE WHEN c.is_open THEN c.reason END AS reason,
           CASE WHEN c.is_open THEN c.probe_at END AS "probeAt", COALESCE(w.waiting, 0)::int AS waiting
    FROM saga.service_circuits c
    FULL JOIN (
      SELECT waiting_for AS service, count(*) AS waiting
      FROM saga.saga_states WHERE waiting_for IS NOT NULL GROUP BY waiting_for) AS w ON w.service = c.service
    ORDER BY 1`);
}

function presentService(
  { name, type, isIdempotent }: ServiceSettings,
  circuit: ServiceCircuit | undefined,
  masks: Masks,
): Json {
  return {
    name,
    type,
    idempotent: isIdempotent,
    circuit: circuit?.isOpen === true ? 'open' : 'closed',
    since: formatInstant(circuit?.since ?? null),
    reason: masks.text(circuit?.reason ?? null),
    next_probe_at: formatInstant(circuit?.probeAt ?? null),
    waiting: circuit?.waiting ?? 0,
  };
}
