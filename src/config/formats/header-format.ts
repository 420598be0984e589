import { secretValue } from '../layers/secret-value.ts';
import { mapOf } from './named-map.ts';
import { text, withRule, type About, type TextAbout } from './value.ts';

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

export const headerName = (about: TextAbout = {}) =>
  text({
    what: 'the name of a header: letters, digits and hyphens',
    pattern: "^[\\w!#$%&'*+.^`|~-]{1,100}$",
    ...about,
  });

const ownHeaderName = headerName({
  rule: (name) =>
    OURS.has(name.toLowerCase()) ? 'must not be set: it belongs to the request itself' : undefined,
});

/** More than this no server takes. */
const MAX_VALUE = 8192;

/** A header is sent as bytes; receivers read other letters than these in different encodings. */
const reasonAgainstValue = (value: string): string | undefined =>
  value.length <= MAX_VALUE && /^[!-~]([ -~]*[!-~])?$/.test(value)
    ? undefined
    : `1 to ${MAX_VALUE} characters of printable ASCII without blanks at its ends`;

export const headers = (about: About = {}) =>
  withRule(mapOf(ownHeaderName, secretValue(reasonAgainstValue), { default: {}, ...about }), (value) => {
    const names = Object.keys(value).map((name) => name.toLowerCase());
    return new Set(names).size < names.length ? 'must name each header once, in capitals or not' : undefined;
  });
