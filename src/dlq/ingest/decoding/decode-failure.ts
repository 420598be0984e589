import { cleanText } from '../../../kernel/text.ts';
import type { Header } from '../../../kernel/broker-record.ts';
import {
  proves,
  type Dialect,
  type DialectName,
  type ErrorField,
  type IntegerField,
  type Reading,
  type TextField,
} from './dialect.ts';
import { dialects } from './dialects.ts';
import type { HeaderError } from './header-error.ts';

/** What a dead letter's headers say about its failure. Texts are cleaned and cut; the topic name is not checked. */
export type Failure = Readonly<{
  dialect: DialectName | 'none';
  errorMessage: string;
  /** The class of the cause if the dialect has it, else that of the outermost error. */
  errorClass: string | undefined;
  errorStack: string | undefined;
  consumerGroup: string | undefined;
  originalTopic: string | undefined;
  originalPartition: number | undefined;
  originalOffset: bigint | undefined;
  originalTimestampMs: number | undefined;
  /** How often the consumer tried, if the dialect has it. */
  attempts: number | undefined;
}>;

const MESSAGE_MAX_BYTES = 16 * 1024;
const STACK_MAX_BYTES = 64 * 1024;
const NAME_MAX_BYTES = 1024;

const INT32_MAX = 2 ** 31 - 1;
const INT64_MAX = 2n ** 63n - 1n;

/** The end of the year 9999: ISO 8601 readers do not accept later dates. */
const TIMESTAMP_MAX_MS = 253_402_300_799_999;

/** Never throws: ignores malformed headers. */
export function decodeFailure(headers: readonly Header[]): Failure {
  const names = headers.map((header) => header.key.toString('latin1'));
  const dialect = dialects.find(({ evidence }) => proves(evidence, names));
  return dialect === undefined ? unknownFailure : failureOf(dialect, collect(dialect, headers, names));
}

const unknownFailure: Failure = {
  dialect: 'none',
  errorMessage: 'unknown error',
  errorClass: undefined,
  errorStack: undefined,
  consumerGroup: undefined,
  originalTopic: undefined,
  originalPartition: undefined,
  originalOffset: undefined,
  originalTimestampMs: undefined,
  attempts: undefined,
};

type Field = TextField | IntegerField;
type Fields = Partial<Record<Field, Readonly<{ reading: Reading; value: Buffer }>>>;

/**
 * Every hop of a dead letter repeats its headers: the oldest one has the origin, the newest one the latest failure.
 * An error's fields are of one hop: a class is never combined with the message of an earlier failure.
 */
function collect(dialect: Dialect, headers: readonly Header[], names: readonly string[]): Fields {
  const isNewestFirst = dialect.newHeaders === 'first';
  const [origin, error]: [Fields, Fields] = [{}, {}];
  const ofThisHop = new Set<string>();
  for (let index = 0; index < headers.length; index += 1) {
    const at = isNewestFirst ? headers.length - 1 - index : index;
    const name = names[at] ?? '';
    const reading = dialect.reads.get(name);
    const value = headers[at]?.value ?? null;
    if (reading === undefined || value === null) continue;
    if (!isErrorField(reading.field)) {
      if (reading.field === 'attempts' || origin[reading.field] === undefined)
        origin[reading.field] = { reading, value };
      continue;
    }
    if (ofThisHop.has(name)) {
      ofThisHop.clear();
      for (const field of errorFields) delete error[field];
    }
    ofThisHop.add(name);
    error[reading.field] = { reading, value };
  }
  return { ...origin, ...error };
}

const errorFields: readonly ErrorField[] = [
  'errorMessage',
  'causeMessage',
  'errorClass',
  'causeClass',
  'errorStack',
];

function isErrorField(field: Field): field is ErrorField {
  return errorFields.some((known) => known === field);
}

function failureOf(dialect: Dialect, fields: Fields): Failure {
  const error = dialect.unwrap({
    // The wrapper around a message may be longer than the limit of the message.
    message: text(fields, 'causeMessage', STACK_MAX_BYTES) ?? text(fields, 'errorMessage', STACK_MAX_BYTES),
    class: text(fields, 'causeClass', NAME_MAX_BYTES) ?? text(fields, 'errorClass', NAME_MAX_BYTES),
    stack: text(fields, 'errorStack', STACK_MAX_BYTES),
  });
  return {
    dialect: dialect.name,
    errorMessage: messageOf(error),
    errorClass: error.class === undefined ? undefined : cleanText(error.class, NAME_MAX_BYTES),
    errorStack: error.stack,
    consumerGroup: text(fields, 'consumerGroup', NAME_MAX_BYTES),
    originalTopic: text(fields, 'originalTopic', NAME_MAX_BYTES),
    originalPartition: integer(fields, 'originalPartition', INT32_MAX),
    originalOffset: natural(fields, 'originalOffset'),
    originalTimestampMs: integer(fields, 'originalTimestampMs', TIMESTAMP_MAX_MS),
    attempts: integer(fields, 'attempts', INT32_MAX),
  };
}

/** Exceptions often have no message (a null pointer): then the class is the message. */
function messageOf(error: HeaderError): string {
  return cleanText(error.message ?? error.class ?? unknownFailure.errorMessage, MESSAGE_MAX_BYTES);
}

function text(fields: Fields, field: TextField, maxBytes: number): string | undefined {
  const found = fields[field];
  if (found === undefined) return undefined;
  const decoded = cleanText(found.value, maxBytes);
  if (!/\S/.test(decoded)) return undefined;
  const parse = 'parse' in found.reading ? found.reading.parse : undefined;
  return parse === undefined ? decoded : parse(decoded);
}

function integer(fields: Fields, field: IntegerField, max: number): number | undefined {
  const value = natural(fields, field);
  return value === undefined || value > max ? undefined : Number(value);
}

/** Kafka writes -1 for none. */
function natural(fields: Fields, field: IntegerField): bigint | undefined {
  const found = fields[field];
  if (found === undefined || !('codec' in found.reading)) return undefined;
  const value = found.reading.codec(found.value);
  return value === undefined || value < 0n || value > INT64_MAX ? undefined : value;
}
