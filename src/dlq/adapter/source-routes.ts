import { actorOf } from '../../platform/http/actor.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { accountSources } from '../usecase/account-sources.ts';
import { seekSource, type SeekDeps, type SeekTarget } from '../usecase/seek-source.ts';
import { invalidInput } from './invalid-input.ts';
import { presentAccount, presentSource } from './present.ts';
import { root } from './root.ts';
import * as schemas from './schemas.ts';

/** The partitions that are read: where they stand, what became of every record, and reading them again. */
export function addSourceRoutes(app: HttpApp, deps: SeekDeps): void {
  app.get(
    `${root}/sources`,
    { schema: { summary: 'Every partition being read', response: { 200: schemas.SourcesSchema } } },
    async (_request, reply) =>
      reply.send({ sources: (await accountSources(deps.partitions)).map(presentSource) }),
  );

  app.get(
    `${root}/accounting`,
    {
      schema: {
        summary: 'The proof that no record is missing, per partition',
        response: { 200: schemas.AccountingSchema },
      },
    },
    async (_request, reply) => {
      const accounts = await accountSources(deps.partitions);
      return reply.send({
        balanced: accounts.every((account) => account.isBalanced),
        partitions: accounts.map(presentAccount),
      });
    },
  );

  app.post(
    `${root}/sources/:topic/:partition/seek`,
    {
      schema: {
        summary: 'Read a partition again; what was taken before is not stored twice',
        params: schemas.SeekParams,
        body: schemas.SeekBody,
        response: { 200: schemas.SeekSchema },
      },
    },
    async (request, reply) => {
      const { topic, partition } = request.params;
      const target = seekTarget(request.body);
      const sought = await seekSource(deps, {
        topic,
        partition,
        target,
        actor: actorOf(request),
        reason: request.body.reason,
      });
      const message = `${topic}/${partition} is read again from offset ${sought.to}`;
      return reply.send({ topic, partition, from: sought.from, to: sought.to, message });
    },
  );
}

/** With its zone: what Date.parse makes of other texts is nobody's intention. */
const isoTimestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

function seekTarget(
  body: Readonly<{
    offset?: number | undefined;
    timestamp?: string | undefined;
    earliest?: true | undefined;
  }>,
): SeekTarget {
  const named = [body.offset, body.timestamp, body.earliest].filter((target) => target !== undefined);
  if (named.length !== 1)
    throw invalidInput('offset', 'exclusive', 'exactly one of offset, timestamp and earliest is required');
  if (body.offset !== undefined) return { to: 'offset', offset: BigInt(body.offset) };
  if (body.timestamp === undefined) return { to: 'earliest' };
  const ms = isoTimestamp.test(body.timestamp) ? Date.parse(body.timestamp) : Number.NaN;
  if (Number.isNaN(ms) || ms < 0)
    throw invalidInput('timestamp', 'format', 'timestamp is not a date in ISO 8601');
  return { to: 'timestamp', timestampMs: BigInt(ms) };
}
