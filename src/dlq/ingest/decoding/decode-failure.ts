import { cleanText } from '../../../kernel/text.ts';
import type { Header } from '../../../kernel/broker-record.ts';
import {
  dialects,
  isAmong,
  type Dialect,
  type DialectName,
  type IntegerField,
  type Reading,
  type TextField,
} from './dialects.ts';
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

/** The end of the year 9999: ISO 8601 readers do not accept later dates. */
const TIMESTAMP_MAX_MS = 253_402_300_799_999;

/** Never throws: ignores malformed headers. */
export function decodeFailure(headers: readonly Header[]): Failure {
  const names = headers.map((header) => header.key.toString('latin1'));
  const dialect = dialects.find(({ evidence }) => names.some((name) => isAmong(evidence, name)));
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

type Fields = Partial<Record<TextField | IntegerField, Readonly<{ reading: Reading; value: Buffer }>>>;

/** Every hop of a dead letter repeats its headers: the first one has the origin, the last one the latest failure. */
function collect(dialect: Dialect, headers: readonly Header[], names: readonly string[]): Fields {
  const fields: Fields = {};
  for (const [index, { value }] of headers.entries()) {
    const reading = dialect.reads.get(names[index] ?? '');
    if (reading === undefined || value === null) continue;
    if (isOfLatestHop[reading.field] || fields[reading.field] === undefined)
      fields[reading.field] = { reading, value };
  }
  return fields;
}

const isOfLatestHop: Readonly<Record<TextField | IntegerField, boolean>> = {
  errorMessage: true,
  errorClass: true,
  causeClass: true,
  errorStack: true,
  attempts: true,
  consumerGroup: false,
  originalTopic: false,
  originalPartition: false,
  originalOffset: false,
  originalTimestampMs: false,
};

function failureOf(dialect: Dialect, fields: Fields): Failure {
  const error = dialect.unwrap({
    // The wrapper around a message may be longer than the limit of the message.
    message: text(fields, 'errorMessage', STACK_MAX_BYTES),
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
  const value = fields[field]?.value;
  if (value === undefined) return undefined;
  const decoded = cleanText(value, maxBytes);
  return /\S/.test(decoded) ? decoded : undefined;
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
  return value === undefined || value < 0n ? undefined : value;
}
