import type { Static } from 'typebox';
import type { CursorShape, PageRequest } from '../../kernel/page.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import type { Masks } from '../../kernel/protect/protection.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { addListRoute, type Listed } from '../../platform/http/list-route.ts';
import { apiRoot } from '../../platform/http/slice-input.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import type { Payloads } from '../domain/payloads.ts';
import { readClock } from '../../platform/postgres/read-clock.ts';
import { presentKey, timestamp, type Json } from '../present.ts';
import { findGroup, type GroupDetails } from './find-group.ts';
import * as schemas from './group-schemas.ts';
import { listGroups, type Group, type GroupFilter } from './list-groups.ts';

const root = `${apiRoot('dlq')}/groups`;
const cursorShape: CursorShape = ['timestamp', 'text'];
/** More than a group with 20 long topic names usually takes. */
const groupBytes = 20_000;

export function addGroupRoutes(
  app: HttpApp,
  { db, payloads, masking }: Readonly<{ db: Queryable; payloads: Payloads; masking: PayloadMasks }>,
): void {
  // A group has messages of many topics, so all rules for topics hold.
  const masks = masking.ofAny();
  addListRoute(app, {
    slice: 'dlq',
    path: root,
    access: { permission: 'dlq:messages:view', scope: { by: 'topics', in: 'list' } },
    operationId: 'listGroups',
    summary: 'List failures grouped by fingerprint',
    description:
      'Groups messages by the cause of their failure, the latest failure first. Counts only what the filters match. Order and `last_at` may be 15 seconds behind.',
    query: schemas.GroupListQuery,
    answer: schemas.GroupListSchema,
    items: 'groups',
    rowBytes: groupBytes,
    cursor: () => cursorShape,
    keyOf: ({ lastAtExact, fingerprint }: Group) => [lastAtExact, fingerprint],
    require: ({ error_class: name }, request) => masking.requireVisible(request, 'error_class', name, 'text'),
    present: (group) => presentGroup(group, masks),
    list: (query, page, _request, names) => listPage(db, { ...filterOf(query), names }, page),
  });
  app.get(
    `${root}/:fingerprint`,
    {
      config: { access: { permission: 'dlq:messages:view', scope: { by: 'topics', in: 'list' } } },
      schema: {
        operationId: 'getGroup',
        summary: 'Get one group of failures',
        description:
          'Shows what the messages of a group have in common, their most frequent keys, and counts by topic and consumer group. The fingerprint may be shortened to a prefix that no other has.',
        errors: [404],
        params: schemas.GroupParams,
        response: { 200: schemas.GroupSchema },
      },
    },
    async (request, reply) => {
      await request.reserveAnswer(detailsBytes);
      const names = namesFor(request);
      const found = await findGroup(db, request.params.fingerprint, { names, payloads });
      return reply.send(presentDetails(found, masks));
    },
  );
}

const detailsBytes = 500_000;

function filterOf(query: Static<typeof schemas.GroupListQuery>): GroupFilter {
  const { fingerprint, topic, consumer_group: consumerGroup, status, error_class: errorClass } = query;
  return {
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(topic === undefined ? {} : { topic }),
    ...(consumerGroup === undefined ? {} : { consumerGroup }),
    ...(status === undefined ? {} : { status }),
    ...(errorClass === undefined ? {} : { errorClass }),
  };
}

async function listPage(db: Queryable, filter: GroupFilter, page: PageRequest): Promise<Listed<Group>> {
  const [lastAt, fingerprint] = page.by === 'keyset' ? (page.after ?? []) : [];
  const asOf = timestamp(await readClock(db));
  const { groups, ...listed } = await listGroups(db, filter, {
    after: lastAt === undefined || fingerprint === undefined ? null : { lastAt, fingerprint },
    offset: page.by === 'number' ? page.offset : 0,
    pageSize: page.pageSize,
  });
  return { items: groups, ...listed, more: { as_of: asOf } };
}

function presentGroup(group: Group, masks: Masks): Json {
  return {
    fingerprint: group.fingerprint,
    title: masks.text(group.template ?? group.sampleError ?? group.fingerprint),
    error_class: masks.text(group.errorClass),
    count: Object.values(group.counts).reduce((sum, count) => sum + count, 0),
    counts: group.counts,
    first_at: timestamp(group.firstAt),
    last_at: timestamp(group.lastAt),
    topics: group.topics,
    consumer_groups: group.consumerGroups,
    trend: group.trend,
    badges: group.badges,
    sample_id: group.sampleId,
    frame: masks.text(group.frame),
  };
}

function presentDetails({ group, topKeys, byTopic }: GroupDetails, masks: Masks): Json {
  const { version, errorClass, template, frame } = group;
  return {
    ...presentGroup(group, masks),
    why: {
      version,
      class: masks.text(errorClass),
      template: masks.text(template),
      frame: masks.text(frame),
    },
    top_keys: topKeys.map(({ key, ...rest }) => ({
      ...presentKey(key === null ? null : masks.key(key)),
      ...rest,
    })),
    by_topic: byTopic.map(({ topic, consumerGroup, counts }) => ({
      topic,
      consumer_group: consumerGroup,
      counts,
    })),
  };
}
