import type { FastifyRequest } from 'fastify';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { apiRoot, invalidField } from '../../platform/http/slice-input.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Payloads } from '../domain/payloads.ts';
import { IdParams } from '../schemas.ts';
import { messageScope, parseMessageId } from '../stored-message.ts';
import { isCovered } from './reveal/covered-records.ts';
import { masksOfVersions, protectedRecord } from './reveal/masks-of-versions.ts';
import { presentDiff } from './diff/present-diff.ts';
import { presentRaw, presentVersion, presentWholeVersion } from './present-details.ts';
import { addRevealRoute } from './reveal/reveal-route.ts';
import {
  comparedBytes,
  getCompared,
  getVersion,
  listVersions,
  measureVersion,
  newestVersion,
  recordFactor,
  type WholeVersion,
} from './read-versions.ts';
import { addValueRoute } from './value-route.ts';
import {
  DiffQuery,
  DiffSchema,
  RawQuery,
  RawSchema,
  VersionListSchema,
  VersionParams,
  VersionSchema,
} from './version-schemas.ts';

const path = `${apiRoot('dlq')}/messages/:id`;

/** Two values with their texts, formatted texts and lines. */
const diffFactor = 8;

export type VersionDeps = Readonly<{
  db: Database;
  payloads: Payloads;
  masking: PayloadMasks;
  /** Whether the bytes have a JSON view. */
  isJson: (bytes: Buffer) => boolean;
}>;

export function addVersionRoutes(app: HttpApp, deps: VersionDeps): void {
  const { db } = deps;
  app.get(
    `${path}/raw`,
    {
      config: { access: { permission: 'dlq:payloads:view', scope: messageScope(db) } },
      schema: {
        operationId: 'getRawMessage',
        summary: 'Get the record of a message byte for byte',
        description:
          'Returns key, value and headers in Base64, and as text where they are text: of the newest version, which a retry publishes, or of `version`; 0 is the original.',
        errors: [404],
        params: IdParams,
        querystring: RawQuery,
        response: { 200: RawSchema },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      const version = request.query.version ?? (await newestVersion(db, id));
      await request.reserveAnswer((await measureVersion(db, id, version)) * recordFactor);
      return reply.send(presentRaw(id, await getUncovered(deps, request, id, version)));
    },
  );

  app.get(
    `${path}/versions`,
    {
      config: { access: { permission: 'dlq:messages:view', scope: messageScope(db) } },
      schema: {
        operationId: 'listMessageVersions',
        summary: 'List the versions of a message',
        description: 'Version 0 is the original; each edit adds one. At most 101.',
        errors: [404],
        params: IdParams,
        response: { 200: VersionListSchema },
      },
    },
    async (request, reply) => {
      const versions = await listVersions(db, parseMessageId(request.params.id));
      return reply.send({ versions: versions.map(presentVersion) });
    },
  );

  app.get(
    `${path}/versions/:version`,
    {
      config: { access: { permission: 'dlq:payloads:view', scope: messageScope(db) } },
      schema: {
        operationId: 'getMessageVersion',
        summary: 'Get one version of a message',
        description: 'Its record as in `…/raw`, its target topic, and who made it, when and why.',
        errors: [404],
        params: VersionParams,
        response: { 200: VersionSchema },
      },
    },
    async (request, reply) => {
      const { params } = request;
      const id = parseMessageId(params.id);
      await request.reserveAnswer((await measureVersion(db, id, params.version)) * recordFactor);
      return reply.send(presentWholeVersion(id, await getUncovered(deps, request, id, params.version)));
    },
  );

  addValueRoute(app, deps);
  addDiffRoute(app, deps);
  addRevealRoute(app, deps);
}

/** A version byte for byte, which has no protected parts: bytes with a mask in them would be taken for the record. */
async function getUncovered(
  deps: VersionDeps,
  request: FastifyRequest,
  id: string,
  version: number,
): Promise<WholeVersion> {
  const record = await getVersion(deps.db, { id, version }, deps.payloads);
  const masks = await masksOfVersions(deps, request, id, [record]);
  if (isCovered(record, masks)) throw protectedRecord(id);
  return record;
}

function addDiffRoute(app: HttpApp, { db, payloads, masking, isJson }: VersionDeps): void {
  app.get(
    `${path}/diff`,
    {
      config: { access: { permission: 'dlq:payloads:view', scope: messageScope(db) } },
      schema: {
        operationId: 'diffMessageVersions',
        summary: 'Compare two versions of a message',
        description:
          'By default the original (`from=0`) with the newest version. Shows what differs in key, target topic, headers and value; the value as a unified diff if it is text or JSON.',
        errors: [404],
        params: IdParams,
        querystring: DiffQuery,
        response: { 200: DiffSchema },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      const { from = 0, to = await newestVersion(db, id) } = request.query;
      if (from > to) throw invalidField('dlq', 'to', 'range', 'must not be less than from');
      const sizes = [await measureVersion(db, id, from), await measureVersion(db, id, to)];
      const compared = sizes.reduce((sum, bytes) => sum + Math.min(bytes, comparedBytes), 0);
      await request.reserveAnswer(compared * diffFactor);
      const compare = (version: number) => getCompared(db, { id, version }, payloads);
      const versions = [await compare(from), await compare(to)] as const;
      const masks = await masksOfVersions({ db, masking }, request, id, versions);
      return reply.send(presentDiff(id, versions, { isJson, masks }));
    },
  );
}
