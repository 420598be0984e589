import type { IntegerCodec } from './codecs.ts';
import type { HeaderError } from './header-error.ts';

/** How one kind of producer writes the headers of its dead letters. The table of them is in `dialects.ts`. */
export type Dialect = Readonly<{
  name: DialectName;
  evidence: Evidence;
  reads: ReadonlyMap<string, Reading>;
  /** Failure headers in any record: a republished record never has them. */
  failureHeaders: HeaderNames;
  /** Names that ordinary messages use too: failure headers only in a record of this dialect. */
  ownFailureHeaders: HeaderNames;
  /** Where a producer that meets its own headers of an earlier failure puts the new ones. */
  newHeaders: 'last' | 'first';
  /** Unwraps the error that the producer's framework has wrapped. */
  unwrap: (error: HeaderError) => HeaderError;
}>;

export type DialectName =
  | 'spring-kafka'
  | 'spring-cloud-stream'
  | 'kafka-connect'
  | 'kafka-streams'
  | 'share-group'
  | 'masstransit'
  | 'nservicebus'
  | 'smallrye'
  | 'eventferry'
  | 'karafka'
  | 'wolverine'
  | 'plain';

/** `causeMessage` is the more specific message: it wins over `errorMessage`, as `causeClass` does over `errorClass`. */
export type ErrorField = 'errorMessage' | 'causeMessage' | 'errorClass' | 'causeClass' | 'errorStack';

export type TextField = ErrorField | 'consumerGroup' | 'originalTopic';

export type IntegerField = 'originalPartition' | 'originalOffset' | 'originalTimestampMs' | 'attempts';

/**
 * The field that a header holds. If two names hold the same field, their order in the record decides. `parse` finds
 * the field in a longer text, such as an address; without a result the header is ignored.
 */
export type Reading =
  | Readonly<{ field: TextField; parse?: (text: string) => string | undefined }>
  | Readonly<{ field: IntegerField; codec: IntegerCodec }>;

/** Any of `any` proves the dialect, or all names of one list of `together`; nothing does if one of `unless` is there. */
export type Evidence = Readonly<{
  any?: HeaderNames;
  together?: readonly (readonly string[])[];
  unless?: HeaderNames;
}>;

export type HeaderNames = Readonly<{ prefixes: readonly string[]; names: ReadonlySet<string> }>;

export const noHeaders: HeaderNames = { prefixes: [], names: new Set() };

export const named = (...names: readonly string[]): HeaderNames => ({ prefixes: [], names: new Set(names) });

export const startingWith = (...prefixes: readonly string[]): HeaderNames => ({ prefixes, names: new Set() });

export function isAmong(headers: HeaderNames, name: string): boolean {
  return headers.names.has(name) || headers.prefixes.some((prefix) => name.startsWith(prefix));
}

export function proves({ any, together = [], unless }: Evidence, names: readonly string[]): boolean {
  const isProved =
    (any !== undefined && names.some((name) => isAmong(any, name))) ||
    together.some((list) => list.every((name) => names.includes(name)));
  return isProved && (unless === undefined || !names.some((name) => isAmong(unless, name)));
}
