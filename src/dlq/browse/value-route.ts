import { Type } from 'typebox';
import { AppError } from '../../kernel/errors.ts';
import { formatContentRange, readByteRange } from '../../platform/http/byte-range.ts';
import { entityTagOf } from '../../platform/http/entity-tag.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { apiRoot } from '../../platform/http/slice-input.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import type { Payloads } from '../domain/payloads.ts';
import { IdParams } from '../schemas.ts';
import { messageScope, parseMessageId } from '../stored-message.ts';
import { measureValue, newestVersion, readValue } from './read-versions.ts';
import { masksOfVersions, protectedRecord } from './reveal/masks-of-versions.ts';
import { RawQuery } from './version-schemas.ts';

/** Of one answer; longer values are read in parts. */
const maxBytes = 32 << 20;
const type = 'application/octet-stream';

const bytesOf = (description: string): object => ({
  description,
  content: { [type]: { schema: Type.String({ format: 'binary', examples: ['{"order_id":7}'] }) } },
});

const RangeHeaders = Type.Object({
  range: Type.Optional(
    Type.String({
      description: 'One range of bytes; anything else is ignored.',
      examples: ['bytes=0-262143'],
    }),
  ),
  'if-range': Type.Optional(
    Type.String({
      description: 'The `ETag` of the part read before; if it is another one, `Range` is ignored.',
    }),
  ),
});

type ValueDeps = Readonly<{ db: Queryable; payloads: Payloads; masking: PayloadMasks }>;

/** The value as a file: a browser saves it, and never shows it as a page of ours. */
export function addValueRoute(app: HttpApp, { db, payloads, masking }: ValueDeps): void {
  app.get(
    `${apiRoot('dlq')}/messages/:id/value`,
    {
      config: { access: { permission: 'dlq:payloads:view', scope: messageScope(db) } },
      schema: {
        operationId: 'downloadMessageValue',
        summary: 'Download the value of a message',
        description: `Returns the bytes of the newest version, which a retry publishes, or of \`version\`; 0 is the original. \`Range\` reads a part; values above ${maxBytes >> 20} MiB have to be read in parts.`,
        errors: [404, 416],
        hasEtag: true,
        params: IdParams,
        querystring: RawQuery,
        headers: RangeHeaders,
        response: { 200: bytesOf('The whole value.'), 206: bytesOf('The part that `Range` names.') },
      },
    },
    async (request, reply) => {
      const id = parseMessageId(request.params.id);
      const version = request.query.version ?? (await newestVersion(db, id));
      const { bytes: size, isSealed } = await measureValue(db, { id, version });
      if (size === null) throw withoutValue(id, version);
      const tag = entityTagOf(version);
      const { range, 'if-range': ifRange } = request.headers;
      const part = ifRange === undefined || ifRange === tag ? readByteRange(range, size) : null;
      const wanted = part ?? { start: 0, bytes: size };
      if (wanted.bytes > maxBytes) throw tooLong(wanted.bytes);
      const masks = await masksOfVersions({ db, masking }, request, id, []);
      await request.reserveAnswer(isSealed || !masks.isEmpty ? size : wanted.bytes);
      if (!masks.isEmpty && size > 0) {
        // A part says nothing about what is protected in it: the whole value does.
        if (size > maxBytes) throw protectedRecord(id);
        const whole = await readValue(db, { id, version }, { start: 0, bytes: size }, payloads);
        if (masks.value(whole) !== whole) throw protectedRecord(id);
      }
      const value = size === 0 ? Buffer.alloc(0) : await readValue(db, { id, version }, wanted, payloads);
      if (part !== null) reply.status(206).header('content-range', formatContentRange(part, size));
      return reply
        .type(type)
        .headers({
          'accept-ranges': 'bytes',
          'content-disposition': `attachment; filename="${id}-${version}.bin"`,
          etag: tag,
        })
        .send(value);
    },
  );
}

/** Null is not empty: an empty file would hide the difference. */
function withoutValue(id: string, version: number): AppError {
  return new AppError(
    'SYS_DLQ_NOT_FOUND',
    'not_found',
    `version ${version} of dlq message ${id} has no value`,
  );
}

function tooLong(bytes: number): AppError {
  return new AppError(
    'SYS_DLQ_TOO_LARGE',
    'too_large',
    `${bytes} bytes are more than one answer has: send the header Range, at most ${maxBytes} bytes a time`,
  );
}
