import { Type, type Static } from 'typebox';
import type { Header } from '../../kernel/broker-record.ts';
import { AppError } from '../../kernel/errors.ts';
import { closed, nullable, Reason } from '../../platform/http/schema-parts.ts';
import { invalidField } from '../../platform/http/slice-input.ts';
import { isReservedHeader } from '../domain/message-edit.ts';
import { TopicParameter } from '../schemas.ts';
import type { Changes } from './edit-message.ts';

/** The value is bounded by the size of the body. */
const maxKeyBytes = 1 << 20;
const maxHeaderBytes = 1 << 20;
const maxHeaders = 1000;

const Base64 = Type.String({ examples: ['eyJvcmRlcl9pZCI6N30='] });

const EditedHeader = Type.Object(
  {
    key: Type.Optional(nullable(Type.String({ examples: ['tenant'] }))),
    key_base64: Type.Optional(Base64),
    value: Type.Optional(nullable(Type.String({ examples: ['acme'] }))),
    value_base64: Type.Optional(Base64),
  },
  closed,
);

export const EditBody = Type.Object(
  {
    value: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        examples: ['{"order_id":7}'],
        description: 'As text; null publishes a null value (a tombstone).',
      }),
    ),
    value_base64: Type.Optional(
      Type.String({ description: 'The bytes of a value that is not text; not together with `value`.' }),
    ),
    key: Type.Optional(nullable(Type.String({ description: 'As text; null publishes no key.' }))),
    key_base64: Type.Optional(Type.String({ description: 'Not together with `key`.' })),
    headers: Type.Optional(
      Type.Array(EditedHeader, {
        maxItems: maxHeaders,
        description:
          'All headers in their order, in the form of `…/raw`; replaces the list. Those of `redrive-*` are set by every retry and are refused; failure headers of the dialect are removed by every retry.',
      }),
    ),
    target_topic: Type.Optional(TopicParameter),
    reason: Reason,
    may_send_twice: Type.Optional(
      Type.Boolean({ description: 'Required as true if the outcome of the newest attempt is unknown.' }),
    ),
  },
  closed,
);

/** What the body changes; what it does not name stays as it is. */
export function readChanges(body: Static<typeof EditBody>): Changes {
  const key = readPart(body, 'key');
  const value = readPart(body, 'value');
  const changes: Changes = {
    ...(key === undefined ? {} : { key }),
    ...(value === undefined ? {} : { value }),
    ...(body.headers === undefined ? {} : { headers: readHeaders(body.headers) }),
    ...(body.target_topic === undefined ? {} : { targetTopic: body.target_topic }),
  };
  if (Object.keys(changes).length === 0)
    throw wrongEdit('value', 'required', 'is missing: send value, key, headers or target_topic');
  if (key !== undefined && key !== null && key.length > maxKeyBytes)
    throw wrongEdit('key', 'too_large', `must not be larger than ${maxKeyBytes} bytes`);
  return changes;
}

/** Undefined if neither form was sent. */
function readPart(body: Static<typeof EditBody>, name: 'key' | 'value'): Buffer | null | undefined {
  const [text, base64] = [body[name], body[`${name}_base64`]];
  if (text !== undefined && base64 !== undefined)
    throw wrongEdit(name, 'exclusive', `cannot be combined with ${name}_base64`);
  if (base64 !== undefined) return decode(base64, `${name}_base64`);
  return text === undefined || text === null ? text : Buffer.from(text);
}

function readHeaders(headers: NonNullable<Static<typeof EditBody>['headers']>): readonly Header[] {
  let bytes = 0;
  return headers.map((header, i) => {
    const key = readOne(header.key, header.key_base64, `headers.${i}.key`);
    const value = readOne(header.value, header.value_base64, `headers.${i}.value`);
    if (key === null) throw invalidField('dlq', `headers.${i}.key`, 'type', 'must not be null');
    if (isReservedHeader(key.toString('latin1')))
      throw wrongEdit(`headers.${i}.key`, 'reserved', 'is reserved: every retry sets the redrive-* headers');
    bytes += key.length + (value?.length ?? 0);
    if (bytes > maxHeaderBytes)
      throw wrongEdit('headers', 'too_large', `must not be larger than ${maxHeaderBytes} bytes together`);
    return { key, value };
  });
}

/** Both forms may be sent if they agree: `…/raw` shows text in both. */
function readOne(text: string | null | undefined, base64: string | undefined, field: string): Buffer | null {
  if (base64 === undefined) {
    if (text === undefined) throw invalidField('dlq', field, 'required', 'is required');
    return text === null ? null : Buffer.from(text);
  }
  const bytes = decode(base64, `${field}_base64`);
  if (typeof text === 'string' && !bytes.equals(Buffer.from(text)))
    throw wrongEdit(field, 'exclusive', `differs from ${field}_base64: send one of them`);
  return bytes;
}

/** Node skips what is no Base64, so the bytes are encoded again to compare. */
function decode(base64: string, field: string): Buffer {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64)
    throw invalidField('dlq', field, 'format', 'must be Base64 with its padding');
  return bytes;
}

function wrongEdit(field: string, reason: string, message: string): AppError {
  return new AppError('SYS_DLQ_WRONG_EDIT', 'semantic', `${field} ${message}`, {
    details: [{ field, reason, message }],
  });
}
