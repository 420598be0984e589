import { refine, text, type Format } from './format.ts';
import { mapOf } from './map-format.ts';
import { secretValue, type SecretValue } from '../layers/secret-value.ts';

/**
 * Names in lower case: what says which order it is, what belongs to the connection, and what would change the bytes
 * of bodies, theirs and ours.
 */
const OURS: ReadonlySet<string> = new Set([
  'idempotency-key',
  'traceparent',
  'tracestate',
  'content-length',
  'content-encoding',
  'accept-encoding',
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
]);

const TOKEN = /^[\w!#$%&'*+.^`|~-]{1,100}$/;

export const headerName = (): Format<string> =>
  text('the name of a header: letters, digits and hyphens', (value) => TOKEN.test(value));

const ownHeaderName = (): Format<string> =>
  refine(headerName(), (value) =>
    OURS.has(value.toLowerCase()) ? 'must not be set: it belongs to the request itself' : undefined,
  );

export const headers = (): Format<Readonly<Record<string, SecretValue>>> =>
  refine(mapOf(ownHeaderName(), secretValue()), (value) => {
    const names = Object.keys(value).map((name) => name.toLowerCase());
    return new Set(names).size < names.length ? 'must name each header once, in capitals or not' : undefined;
  });

/** More than this no server takes. */
const MAX_VALUE = 8192;

/** A header is sent as bytes; whoever reads other letters than these reads them in an encoding of their own. */
export const reasonAgainstHeaderValue = (value: string): string | undefined =>
  value.length <= MAX_VALUE && /^[!-~]([ -~]*[!-~])?$/.test(value)
    ? undefined
    : `1 to ${MAX_VALUE} characters of printable ASCII without blanks at its ends`;
