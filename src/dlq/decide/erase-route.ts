import { Type, type Static } from 'typebox';
import { addActionRoute } from '../../platform/http/action-route.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { apiRoot, invalidField } from '../../platform/http/slice-input.ts';
import { closed, Reason } from '../../platform/http/schema-parts.ts';
import { countErasable, eraseKey, type EraseDeps } from './erase-key.ts';

const EraseBody = Type.Object(
  {
    key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 65_536,
        examples: ['customer-17'],
        description: 'The whole key, as UTF-8.',
      }),
    ),
    key_base64: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 87_384,
        description: 'In place of `key`, for a key that is not text.',
      }),
    ),
    reason: Reason,
    dry_run: Type.Optional(Type.Boolean({ description: 'Only counts the messages.' })),
  },
  closed,
);

const ErasedSchema = Type.Object({
  operation_id: Type.Union([Type.String({ format: 'uuid' }), Type.Null()], {
    description: 'In the audit log; null for a dry run.',
  }),
  messages: Type.Integer(),
  archived: Type.Integer(),
  redrive_items: Type.Integer({ description: 'They keep their outcome, without hashes and reasons.' }),
  remaining: Type.Integer({
    description:
      'Still stored: being retried, locked, or more than 10 000 in one call. Call again until it is 0. For a dry run, all that were found.',
  }),
  topics: Type.Array(Type.String({ examples: ['orders.dlq.v1'] }), {
    description:
      'At most 100 topics from which the records were read, or to which they were published. They may have copies until their retention ends.',
  }),
});

export function addEraseRoute(app: HttpApp, deps: EraseDeps): void {
  addActionRoute(app, {
    path: `${apiRoot('dlq')}/erasures`,
    access: { permission: 'dlq:messages:erase' },
    operationId: 'eraseKey',
    summary: 'Erase all messages with a key',
    description:
      'Deletes the messages in whose newest or an earlier version it is the key, live and archived, with their versions and history, and what redrives and notifications quote of them. Safe to repeat.',
    errors: [],
    params: Type.Object({}),
    body: EraseBody,
    answer: ErasedSchema,
    isExact: true,
    async act({ body, by }) {
      const key = readKey(body);
      if (body.dry_run === true) {
        const remaining = await countErasable(deps, key);
        return { operation_id: null, messages: 0, archived: 0, redrive_items: 0, remaining, topics: [] };
      }
      const { operationId, items, ...erased } = await eraseKey(deps, { key, act: by.act });
      return { operation_id: operationId, ...erased, redrive_items: items };
    },
  });
}

function readKey({ key, key_base64: base64 }: Static<typeof EraseBody>): Buffer {
  if ((key === undefined) === (base64 === undefined))
    throw invalidField('dlq', 'key', 'required', 'or key_base64 is required, and not both');
  if (base64 === undefined) return Buffer.from(key ?? '');
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64)
    throw invalidField('dlq', 'key_base64', 'format', 'must be Base64 with its padding');
  return bytes;
}
