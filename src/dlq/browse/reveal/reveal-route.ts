import { Type, type TSchema } from 'typebox';
import { recordReveal } from '../../../platform/audit/record-reveal.ts';
import type { PayloadMasks } from '../../../platform/http/access/payload-masks.ts';
import { addActionRoute } from '../../../platform/http/action-route.ts';
import type { HttpApp } from '../../../platform/http/http-app.ts';
import { nullable } from '../../../platform/http/schema-parts.ts';
import { apiRoot } from '../../../platform/http/slice-input.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import type { Payloads } from '../../domain/payloads.ts';
import { IdParams, ReasonBody } from '../../schemas.ts';
import { messageScope, parseMessageId } from '../../stored-message.ts';
import { getMessage, measureMessage } from '../find-message.ts';
import { presentRaw } from '../present-details.ts';
import { getVersion, measureVersion, newestVersion, recordFactor } from '../read-versions.ts';
import { RawQuery, RawSchema } from '../version-schemas.ts';

const RevealedSchema: TSchema = Type.Object({
  ...(RawSchema as TSchema & Readonly<{ properties: Record<string, TSchema> }>).properties,
  error_message: Type.String({ examples: ['connect ETIMEDOUT 10.0.0.7:5432'] }),
  error_stack: nullable(Type.String({ examples: ['at charge (payments.ts:17:5)'] })),
});

/** The only answer in which nothing is covered. Every one is on record before it is sent. */
export function addRevealRoute(
  app: HttpApp,
  { db, payloads, masking }: Readonly<{ db: Database; payloads: Payloads; masking: PayloadMasks }>,
): void {
  addActionRoute(app, {
    path: `${apiRoot('dlq')}/messages/:id/reveal`,
    access: { permission: 'dlq:payloads:view', scope: messageScope(db) },
    operationId: 'revealMessage',
    summary: 'Show a message with its protected parts',
    description:
      'Returns the record byte for byte, as in `…/raw`, and the error, with nothing covered: of the newest version, or of `version`. It is in the audit log with its reason; at most 60 a minute per caller.',
    errors: [404],
    params: IdParams,
    query: RawQuery,
    body: ReasonBody,
    answer: RevealedSchema,
    async act({ params, query, by, request }) {
      const id = parseMessageId(params.id);
      masking.limitReveals(request);
      const version = query.version ?? (await newestVersion(db, id));
      const bytes = (await measureVersion(db, id, version)) * recordFactor + (await measureMessage(db, id));
      await request.reserveAnswer(bytes);
      return db.transaction(async (tx) => {
        const record = await getVersion(tx, { id, version }, payloads);
        const { errorMessage, errorStack, originalTopic } = await getMessage(tx, id, payloads);
        await recordReveal(tx, by.act, {
          resource: `dlq/messages/${id}`,
          names: { topics: [...new Set([originalTopic, record.target])] },
          detail: { version },
        });
        return { ...presentRaw(id, record), error_message: errorMessage, error_stack: errorStack };
      });
    },
  });
}
