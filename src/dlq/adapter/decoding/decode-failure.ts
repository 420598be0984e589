import { cleanText } from '../../../kernel/text.ts';
import type { Header } from '../../domain/record.ts';
import {
  dialects,
  isAmong,
  type Dialect,
  type DialectName,
  type IntegerField,
  type Reading,
  type TextField,
} from './dialects.ts';
import type { ToldError } from './told-error.ts';

/** What a dead letter's headers tell about its failure. Text is clean and bounded; the topic's name is not checked. */
export type Failure = Readonly<{
  dialect: DialectName | 'none';
  errorMessage: string;
  /** The cause's class where the dialect tells it, else that of the outermost error. */
  errorClass: string | undefined;
  errorStack: string | undefined;
  consumerGroup: string | undefined;
  originalTopic: string | undefined;
  originalPartition: number | undefined;
  originalOffset: bigint | undefined;
  originalTimestampMs: number | undefined;
  /** How often the consumer had tried, where the dialect tells it. */
  attempts: number | undefined;
}>;

const MESSAGE_MAX_BYTES = 16 * 1024;
const STACK_MAX_BYTES = 64 * 1024;
const NAME_MAX_BYTES = 1024;

const INT32_MAX = 2 ** 31 - 1;

/** The end of the year 9999: later dates have no form that both PostgreSQL and ISO 8601 readers take. */
const TIMESTAMP_MAX_MS = 253_402_300_799_999;

/** Never throws: what is malformed is as if it were not there. */
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

type Told = Partial<Record<TextField | IntegerField, Readonly<{ reading: Reading; value: Buffer }>>>;

/**
 * Of repeated headers, which grow with every hop of a dead letter, the first tells the true origin and the last
 * the latest failure.
 */
function collect(dialect: Dialect, headers: readonly Header[], names: readonly string[]): Told {
  const told: Told = {};
  for (const [index, { value }] of headers.entries()) {
    const reading = dialect.reads.get(names[index] ?? '');
    if (reading === undefined || value === null) continue;
    if (isOfLatestHop[reading.field] || told[reading.field] === undefined)
      told[reading.field] = { reading, value };
  }
  return told;
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

function failureOf(dialect: Dialect, told: Told): Failure {
  const error = dialect.explain({
    // A wrapper may be longer than what is kept of the message inside it.
    message: text(told, 'errorMessage', STACK_MAX_BYTES),
    class: text(told, 'causeClass', NAME_MAX_BYTES) ?? text(told, 'errorClass', NAME_MAX_BYTES),
    stack: text(told, 'errorStack', STACK_MAX_BYTES),
  });
  return {
    dialect: dialect.name,
    errorMessage: messageOf(error),
    errorClass: error.class === undefined ? undefined : cleanText(error.class, NAME_MAX_BYTES),
    errorStack: error.stack,
    consumerGroup: text(told, 'consumerGroup', NAME_MAX_BYTES),
    originalTopic: text(told, 'originalTopic', NAME_MAX_BYTES),
    originalPartition: integer(told, 'originalPartition', INT32_MAX),
    originalOffset: natural(told, 'originalOffset'),
    originalTimestampMs: integer(told, 'originalTimestampMs', TIMESTAMP_MAX_MS),
    attempts: integer(told, 'attempts', INT32_MAX),
  };
}

/** Exceptions without a message are common (a null pointer): their class says more than "unknown error". */
function messageOf(error: ToldError): string {
  return cleanText(error.message ?? error.class ?? unknownFailure.errorMessage, MESSAGE_MAX_BYTES);
}

function text(told: Told, field: TextField, maxBytes: number): string | undefined {
  const value = told[field]?.value;
  if (value === undefined) return undefined;
  const decoded = cleanText(value, maxBytes);
  return /\S/.test(decoded) ? decoded : undefined;
}

function integer(told: Told, field: IntegerField, max: number): number | undefined {
  const value = natural(told, field);
  return value === undefined || value > max ? undefined : Number(value);
}

/** Kafka writes -1 for "none". */
function natural(told: Told, field: IntegerField): bigint | undefined {
  const found = told[field];
  if (found === undefined || !('codec' in found.reading)) return undefined;
  const value = found.reading.codec(found.value);
  return value === undefined || value < 0n ? undefined : value;
}
