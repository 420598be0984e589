import type { FastifyRequest } from 'fastify';
import { AppError } from '../../kernel/errors.ts';
import { nobody } from '../../kernel/access/principal.ts';
import type { Act } from '../../kernel/audit/act.ts';
import { minuteMs } from '../../kernel/duration.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Service } from '../../kernel/service.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Authenticate } from '../../platform/http/access/guard-access.ts';
import { actOf } from '../../platform/http/act-of.ts';
import { clientNetworkOf } from '../../platform/http/client-address.ts';
import type { OnDenied } from '../../platform/http/errors/denied-request.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { Worker } from '../../platform/work/work.ts';
import { createDenialTally, type Denial } from './denial-tally.ts';

/** Rows per minute and process; see `createDenialTally`. */
const maxRows = 1000;

export type Denials = Readonly<{
  /** For refusals that are not answers to a request with a token, such as a login that failed. */
  note: (denial: Denial) => void;
  onDenied: OnDenied;
  /** Counts who could prove who they are, and who could not. */
  watch: (authenticate: Authenticate) => Authenticate;
  service: Service;
}>;

/**
 * What was refused: requests without the permission, and wrong tokens. They change nothing, so they need no transaction
 * of their own: they are counted in memory and written once a minute. A process that is killed loses up to a minute.
 */
export function createDenials(
  deps: Readonly<{ db: Database; worker: Worker; metrics: Metrics; logger: Logger }>,
  everyMs = minuteMs,
): Denials {
  const { db, worker, logger } = deps;
  const metrics = createMetrics(deps.metrics);
  const tally = createDenialTally(maxRows);

  const write = async (): Promise<void> => {
    const denials = tally.take();
    if (denials.length === 0) return;
    try {
      await db.transaction(async (tx) => {
        for (const { act, resource, count } of denials)
          await recordAct(tx, act, { resource, outcome: 'denied', items: count });
      });
    } catch (error) {
      tally.putBack(denials);
      throw error;
    }
  };
  const loop = createLoop({
    name: 'audit denials',
    everyMs,
    run: write,
    beat: () => worker.watch?.beat('audit', 'denials'),
    onError: (error) => logger.warn({ err: error }, 'failed to record denials; retrying'),
  });

  return {
    note: tally.note,
    onDenied(request, code) {
      const isKnown = request.principal !== nobody;
      if (isKnown) metrics.denied.inc({ permission: permissionOf(request) });
      tally.note({
        act: isKnown ? actOf(request, code) : unknownCaller(request, code),
        resource: `http/${request.method} ${request.routeOptions.url ?? ''}`,
        caller: isKnown ? request.principal.id : clientNetworkOf(request),
      });
    },
    watch: (authenticate) => async (request, isUse) => {
      if (!isUse) return authenticate(request, isUse);
      try {
        const principal = await authenticate(request, isUse);
        metrics.attempts.inc({ outcome: 'accepted' });
        return principal;
      } catch (error) {
        metrics.attempts.inc({ outcome: outcomeOf(error) });
        throw error;
      }
    },
    service: {
      name: loop.name,
      start: () => loop.start(),
      async stop(deadline) {
        await loop.stop(deadline);
        await write().catch((error: unknown) =>
          logger.warn({ err: error }, 'failed to record the last denials'),
        );
      },
    },
  };
}

function createMetrics(metrics: Metrics) {
  const attempts = metrics.counter({
    name: 'auth_attempts_total',
    help: 'Requests by the outcome of authentication: accepted, refused, missing (no token), unavailable (could not be checked).',
    labelNames: ['outcome'],
  });
  for (const outcome of ['accepted', 'refused', 'missing', 'unavailable']) attempts.inc({ outcome }, 0);
  const denied = metrics.counter({
    name: 'authz_denied_total',
    help: 'Requests refused because their sender lacks the permission.',
    labelNames: ['permission'],
  });
  return { attempts, denied };
}

function outcomeOf(error: unknown): string {
  if (!(error instanceof AppError) || error.kind === 'unavailable') return 'unavailable';
  return error.code === 'SYS_AUTH_MISSING_TOKEN' ? 'missing' : 'refused';
}

function permissionOf({ routeOptions }: FastifyRequest): string {
  const { access } = routeOptions.config;
  return typeof access === 'object' ? access.permission : 'none';
}

/** Whoever sent a wrong token is nobody; all that is known is the address. */
function unknownCaller(request: FastifyRequest, code: string): Act {
  return {
    ...actOf(request, code),
    actor: { type: 'local', id: 'nobody', name: 'nobody', roles: [] },
    action: 'access:tokens:verify',
  };
}
