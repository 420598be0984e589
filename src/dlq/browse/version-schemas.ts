import { Type, type TSchema } from 'typebox';
import { closed, nullable, Timestamp, Uuid } from '../../platform/http/schema-parts.ts';

const HeaderSchema = Type.Object({
  key: nullable(Type.String({ examples: ['order-7'] })),
  key_base64: Type.Optional(Type.String({ examples: ['b3JkZXItNw=='] })),
  value: nullable(Type.String({ examples: ['{"order_id":7}'] })),
  value_base64: Type.Optional(Type.String({ examples: ['eyJvcmRlcl9pZCI6N30='] })),
});

/** Key, value and headers. */
const recordFields = {
  key_base64: nullable(Type.String({ examples: ['b3JkZXItNw=='] })),
  value_base64: nullable(Type.String({ examples: ['eyJvcmRlcl9pZCI6N30='] })),
  key_text: Type.Optional(Type.String()),
  value_text: Type.Optional(Type.String()),
  headers: Type.Array(HeaderSchema),
};

export const RawSchema: TSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  ...recordFields,
  version: Type.Integer({ minimum: 0 }),
});

const Version = Type.Integer({ minimum: 0, maximum: 2_147_483_647 });
const Size = nullable(Type.Integer({ minimum: 0, description: 'Null for null, which is not empty.' }));
const Sha256 = nullable(Type.String({ pattern: '^[0-9a-f]{64}$' }));

export const RawQuery = Type.Object({ version: Type.Optional(Version) }, closed);
export const VersionParams = Type.Object({ id: Uuid, version: Version });
export const DiffQuery = Type.Object({ from: Type.Optional(Version), to: Type.Optional(Version) }, closed);

const factFields = {
  version: Version,
  target_topic: Type.String({ examples: ['orders.v1'] }),
  actor: Type.String({ examples: ['alice@example.com'] }),
  reason: nullable(Type.String()),
  created_at: Timestamp,
};

export const VersionListSchema: TSchema = Type.Object({
  versions: Type.Array(
    Type.Object({
      ...factFields,
      key_bytes: Size,
      value_bytes: Size,
      header_count: Type.Integer(),
    }),
  ),
});

export const VersionSchema: TSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  ...factFields,
  ...recordFields,
});

/** Text and Base64 only of parts that are not long. */
const Part = Type.Object({
  bytes: Size,
  sha256: Sha256,
  text: Type.Optional(Type.String()),
  base64: Type.Optional(Type.String()),
});

const change = (part: TSchema): TSchema => nullable(Type.Object({ from: part, to: part }));
const HeaderPart = Type.Object({ name: HeaderSchema.properties.key, value: Part });

export const DiffSchema: TSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  from: Version,
  to: Version,
  key: change(Part),
  target_topic: change(Type.String({ examples: ['orders.v1'] })),
  headers: nullable(
    Type.Object(
      {
        added: Type.Array(HeaderPart),
        removed: Type.Array(HeaderPart),
        changed: Type.Array(Type.Object({ name: HeaderSchema.properties.key, from: Part, to: Part })),
        reordered: Type.Boolean(),
        truncated: Type.Boolean({ description: 'Not all differences are listed.' }),
      },
      { description: 'Null if they are equal. They are not compared if they are larger than 1 MiB.' },
    ),
  ),
  value: nullable(
    Type.Object({
      from: Part,
      to: Part,
      format: Type.Enum(['json', 'text', 'binary', 'too_large'], {
        description:
          'What was compared: JSON with one member per line, text, or only bytes. Values above 2 MiB are not compared.',
      }),
      first_difference: nullable(
        Type.Integer({ minimum: 0, description: 'The position of the first byte that differs.' }),
      ),
      lines: Type.Array(Type.String({ examples: ['-  "qty": 10'] }), {
        description: 'A unified diff. Empty if only the spacing of JSON differs.',
      }),
      truncated: Type.Boolean({ description: 'Lines are cut or left out.' }),
      coarse: Type.Boolean({
        description: 'The values differ in too many lines; those in between are shown as replaced.',
      }),
    }),
  ),
});
