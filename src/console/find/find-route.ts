import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { FoundItem } from '../../kernel/find/found-item.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed, Timestamp } from '../../platform/http/schema-parts.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { readClock } from '../../platform/postgres/read-clock.ts';

type FindItems = (request: FastifyRequest, text: string) => Promise<readonly FoundItem[]>;

export type FindDeps = Readonly<{
  db: Database;
  /** Each asks one slice for what the caller may see there. */
  finders: Readonly<Record<FoundItem['slice'], FindItems>>;
  onError: (error: unknown, slice: string) => void;
  withinMs?: number;
}>;

/** A slice that takes longer is left out, and named: somebody is waiting with the keyboard in hand. */
const usuallyWithinMs = 3000;

const slices = ['dlq', 'outbox', 'jobs', 'saga'] as const;

const Query = Type.Object(
  {
    q: Type.String({
      minLength: 1,
      maxLength: 1000,
      description:
        'The id of an item or its beginning, the number of an order, a whole key (of a message, a deduplication, an idempotency, a correlation), a trace id or a `traceparent`.',
      examples: ['01a1dfae-c3a5-7000-8007-f35eedc32390'],
    }),
  },
  closed,
);

const FoundSchema = Type.Object({
  items: Type.Array(
    Type.Object(
      {
        slice: Type.Enum([...slices]),
        kind: Type.Enum(['message', 'redrive', 'order', 'job', 'saga']),
        id: Type.String({ examples: ['01a1dfae-c3a5-7000-8007-f35eedc32390'] }),
        title: Type.String({
          description: 'Topic, destination, queue or workflow; of a redrive its reason.',
          examples: ['orders.v1'],
        }),
        status: Type.String({ examples: ['DEAD'] }),
        link: Type.String({
          description: 'Its page in the console.',
          examples: ['/dlq/messages/01a1dfae-c3a5-7000-8007-f35eedc32390'],
        }),
        at: Timestamp,
        archived: Type.Boolean(),
        by: Type.Enum(['id', 'key', 'trace'], { description: 'What the text was found as.' }),
      },
      { title: 'FoundItem' },
    ),
  ),
  unavailable: Type.Array(Type.Enum([...slices]), {
    description: 'Slices that failed to answer, so that items of theirs may be missing.',
  }),
  as_of: Timestamp,
});

/** One box for everything that somebody has pasted: whatever the text is, it leads to the items. */
export function addFindRoute(app: HttpApp, deps: FindDeps): void {
  app.get(
    '/api/v1/find',
    {
      config: { access: 'authenticated' },
      schema: {
        operationId: 'findItems',
        summary: 'Find messages, redrives, orders, jobs and sagas by id, key or trace',
        description:
          'Looks in all modules for what the caller may view, each at most 10 items by id, by key and by trace. Keys that are covered for the caller find nothing. Jobs are found by dedupe key until they are done; messages by key and trace about a second after they were stored; encrypted messages by key, not by trace.',
        querystring: Query,
        response: { 200: FoundSchema },
      },
    },
    async (request, reply) => {
      const asOf = formatTimestamp(await readClock(deps.db));
      const { items, unavailable } = await findEverywhere(deps, request, request.query.q.trim());
      return reply.send({ items: items.map(present), unavailable, as_of: asOf });
    },
  );
}

async function findEverywhere(
  { finders, onError, withinMs = usuallyWithinMs }: FindDeps,
  request: FastifyRequest,
  text: string,
) {
  const answers = await Promise.allSettled(
    slices.map(async (slice) => (text === '' ? [] : within(withinMs, finders[slice](request, text)))),
  );
  const unavailable = slices.filter((slice, i) => {
    const answer = answers[i];
    if (answer?.status !== 'rejected') return false;
    onError(answer.reason, slice);
    return true;
  });
  const items = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  // An id may be a key as well.
  const seen = new Map(items.toReversed().map((item) => [`${item.kind} ${item.id}`, item]));
  return { items: items.filter((item) => seen.get(`${item.kind} ${item.id}`) === item), unavailable };
}

async function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out after ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

const pages = {
  message: '/dlq/messages',
  redrive: '/dlq/redrives',
  order: '/outbox/orders',
  job: '/jobs/list',
  saga: '/sagas',
} as const;

function present({ slice, kind, id, title, status, createdAt, isArchived, by }: FoundItem) {
  const link = `${pages[kind]}/${encodeURIComponent(id)}`;
  return { slice, kind, id, title, status, link, at: formatTimestamp(createdAt), archived: isArchived, by };
}
