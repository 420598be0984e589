import { Type } from 'typebox';
import { namesFor } from '../../../platform/http/access/guard-access.ts';
import type { PayloadMasks } from '../../../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../../../platform/http/http-app.ts';
import { closed, nullable } from '../../../platform/http/schema-parts.ts';
import { apiRoot } from '../../../platform/http/slice-input.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { suggestedFields, suggestValues } from './suggest-values.ts';

const Query = Type.Object(
  {
    field: Type.Enum([...suggestedFields], { examples: ['topic'] }),
    prefix: Type.Optional(
      Type.String({ maxLength: 256, examples: ['ord'], description: 'What was typed; empty by default.' }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, description: 'Default 20.' })),
  },
  closed,
);

const SuggestionsSchema = Type.Object(
  {
    values: Type.Array(
      Type.Object({
        value: Type.String({ examples: ['orders.v1'] }),
        label: nullable(
          Type.String({ examples: ['x.Timeout: no answer'], description: 'Of a fingerprint: its error.' }),
        ),
        count: nullable(
          Type.Integer({
            minimum: 0,
            examples: [12],
            description:
              'Messages with this value; of a key among the newest 5000. Null for dead-letter topics.',
          }),
        ),
      }),
    ),
    has_more: Type.Boolean(),
  },
  { title: 'Suggestions' },
);

const defaultLimit = 20;

type SuggestDeps = Readonly<{ db: Queryable; masking: PayloadMasks }>;

export function addSuggestRoute(app: HttpApp, { db, masking }: SuggestDeps): void {
  app.get(
    `${apiRoot('dlq')}/messages/suggest`,
    {
      config: { access: { permission: 'dlq:messages:view', scope: { by: 'topics', in: 'list' } } },
      schema: {
        operationId: 'suggestMessageFilters',
        summary: 'Complete the value of a filter',
        description:
          'Lists values of live messages that begin with the text, then those that contain it, the most frequent first; case does not matter. Error classes and fingerprints are those of the 1000 groups that failed last, keys those of the newest 5000 messages.',
        querystring: Query,
        response: { 200: SuggestionsSchema },
      },
    },
    async (request, reply) => {
      const { field, prefix = '', limit = defaultLimit } = request.query;
      const masks = masking.ofAny();
      if (field === 'key' && masks.protectsKeys) masking.requirePayloads(request, 'key');
      const cover = (value: string): string =>
        field === 'key' ? masks.key(Buffer.from(value)).toString() : value;
      const { values, hasMore } = await suggestValues(db, { field, prefix, limit, names: namesFor(request) });
      const covered = values.map(({ value, label, ...rest }) => ({
        shown: {
          value: field === 'error_class' ? masks.text(value) : cover(value),
          label: masks.text(label),
          ...rest,
        },
        isWhole: (field !== 'error_class' || masks.text(value) === value) && masks.text(label) === label,
      }));
      // Whether something begins with a guess would tell whether the guess is right.
      const known = masking.seesPayloads(request) ? covered : covered.filter(({ isWhole }) => isWhole);
      const isAll = known.length === covered.length;
      return reply.send({ values: known.map(({ shown }) => shown), has_more: hasMore && isAll });
    },
  );
}
