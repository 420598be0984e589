import { AppError, messageOf } from '../../kernel/errors.ts';
import type { BrokerRecord, SkippedRange } from '../../kernel/broker-record.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import type { Payloads } from '../domain/payloads.ts';
import { recordSha256 } from '../domain/record-sha256.ts';
import type { Broker, FetchedBatch, FetchResult, Position } from '../../platform/broker/port.ts';
import { findSource, type SourcePartition } from '../sources.ts';
import { selectTraces, type RecordTrace } from './record-traces.ts';

export type VerifyDeps = Readonly<{ db: Queryable; broker: Broker | null; payloads: Payloads }>;

export type VerifyRequest = Readonly<{
  topic: string;
  partition: number;
  /** Default: the first position, or the log start if that is higher. */
  from: bigint | null;
  /** Default and maximum: the highest position read. */
  to: bigint | null;
}>;

/** Compares a range of offsets on the broker with what is stored. */
export type Verification = Readonly<{
  source: SourcePartition;
  from: bigint;
  to: bigint;
  /** Where to continue, because one call compares a limited number of offsets. Null at the end of the range. */
  next: bigint | null;
  /** What the broker has. */
  records: number;
  control: bigint;
  aborted: bigint;
  gaps: bigint;
  /** What became of the records. */
  messages: number;
  archived: number;
  cameBack: number;
  deleted: number;
  /** Records on the broker without a trace in the database. */
  missing: Offenders;
  /** Messages whose bytes differ from the record's. */
  different: Offenders;
  /** Messages where the broker has a transaction marker or an aborted record. */
  unexpected: Offenders;
}>;

/** The first few offsets, and how many there are. */
export type Offenders = Readonly<{ count: number; first: readonly bigint[] }>;

const offsetsPerCall = 20_000n;
/** A caller asks again for the rest, so that no request lasts long. */
const timePerCallMs = 5000;
const limits = {
  maxWaitMs: 500,
  maxBytes: 4 << 20,
  maxBytesPerPartition: 4 << 20,
  purpose: 'verify',
} as const;
/** Memory for fetched records and their traces. */
const bytesPerCall = 8 << 20;
const namedOffenders = 100;

/** Reserves memory, or rejects. */
type Reserve = (bytes: number) => Promise<void>;

export type SourceVerifier = (request: VerifyRequest, reserve: Reserve) => Promise<Verification>;

/** Compares one range at a time: each takes memory, and load on broker and database. */
export function createSourceVerifier(deps: VerifyDeps): SourceVerifier {
  let isBusy = false;
  return async (request, reserve) => {
    if (isBusy)
      throw new AppError(
        'SYS_DLQ_VERIFY_BUSY',
        'unavailable',
        'this server is verifying another range; try again',
        { retryAfterMs: 1000 },
      );
    isBusy = true;
    try {
      await reserve(bytesPerCall);
      return await verifySource(deps, request);
    } finally {
      isBusy = false;
    }
  };
}

/** Reads a range again and compares every record with what is stored of it. */
async function verifySource(deps: VerifyDeps, request: VerifyRequest): Promise<Verification> {
  const source = await findSource(deps.db, request);
  const { from, to } = rangeOf(source, request);
  const findings = createFindings();
  const giveUpAt = performance.now() + timePerCallMs;
  const end = to - from > offsetsPerCall ? from + offsetsPerCall : to;
  let at = from;
  while (at < end && performance.now() < giveUpAt) {
    const fetched = await fetchAt(deps.broker, source, at);
    // Retention removed records meanwhile: continue at the log start.
    if (typeof fetched === 'bigint') {
      at = fetched > at ? fetched : end;
      continue;
    }
    const next = fetched.nextOffset < end ? fetched.nextOffset : end;
    const traces = await selectTraces(deps, source, { from: at, to: next });
    const isInside = ({ offset }: BrokerRecord): boolean => offset < next;
    findings.compare(fetched.records.filter(isInside), clipped(fetched.skipped, next), traces);
    at = next;
  }
  const next = at < to ? at : null;
  return { source, from, to: at, next, ...findings.result() };
}

function rangeOf(source: SourcePartition, request: VerifyRequest): Readonly<{ from: bigint; to: bigint }> {
  const { firstOffset, nextOffset, highOffset, backfillUntil, logStart } = source;
  // During a backfill the offsets up to its end are not read yet.
  const isFilling = backfillUntil !== null && nextOffset < backfillUntil;
  const read = isFilling ? nextOffset : highOffset;
  const lowest = logStart !== null && logStart > firstOffset ? logStart : firstOffset;
  const from = request.from === null || request.from < lowest ? lowest : request.from;
  const to = request.to === null || request.to > read ? read : request.to;
  return { from, to: to < from ? from : to };
}

/** The records from this offset on, or the log start if that is later. */
async function fetchAt(
  broker: Broker | null,
  { topic, topicId, partition }: SourcePartition,
  offset: bigint,
): Promise<FetchedBatch | bigint> {
  const result = await fetchOnce(broker, { topic, topicId, partition, offset });
  if (!('error' in result)) {
    if (result.nextOffset > offset) return result;
    throw brokerUnavailable(`it returned nothing at offset ${offset}`);
  }
  const { error } = result;
  if (error.kind === 'out_of_range' && error.start !== undefined && error.start > offset) return error.start;
  if (error.kind === 'gone')
    throw new AppError('SYS_DLQ_CONFLICT', 'conflict', `the topic was deleted: ${topic}/${partition}`);
  throw brokerUnavailable(`${error.code}: ${error.message}`);
}

async function fetchOnce(broker: Broker | null, position: Position): Promise<FetchResult> {
  if (broker === null) throw brokerUnavailable('no broker is configured');
  try {
    const [result] = await broker.fetch([position], limits, AbortSignal.timeout(timePerCallMs));
    if (result !== undefined) return result;
  } catch (error) {
    throw brokerUnavailable(messageOf(error), error);
  }
  throw brokerUnavailable('it returned no result');
}

function brokerUnavailable(why: string, cause?: unknown): AppError {
  return new AppError(
    'SYS_DLQ_BROKER_UNAVAILABLE',
    'unavailable',
    `failed to fetch records from the broker: ${why}`,
    { cause, retryAfterMs: 5000 },
  );
}

function clipped(skipped: readonly SkippedRange[], end: bigint): readonly SkippedRange[] {
  return skipped.flatMap((range) =>
    range.from >= end ? [] : [{ ...range, to: range.to < end ? range.to : end }],
  );
}

function createFindings() {
  const counts = { records: 0, messages: 0, archived: 0, cameBack: 0, deleted: 0 };
  const skippedCounts = { control: 0n, aborted: 0n, gap: 0n };
  const offenders = {
    missing: createOffenders(),
    different: createOffenders(),
    unexpected: createOffenders(),
  };
  const isRow = ({ kind }: RecordTrace): boolean => kind === 'messages' || kind === 'archived';

  return {
    compare(
      records: readonly BrokerRecord[],
      skipped: readonly SkippedRange[],
      traces: readonly RecordTrace[],
    ): void {
      const byOffset = new Map(traces.map((trace) => [trace.offset, trace]));
      for (const { offset, key, value } of records) {
        counts.records += 1;
        const trace = byOffset.get(offset);
        if (trace === undefined) offenders.missing.add(offset);
        else counts[trace.kind] += 1;
        if (trace?.sha256 && !trace.sha256.equals(recordSha256(key, value))) offenders.different.add(offset);
      }
      for (const { kind, from, to } of skipped) {
        skippedCounts[kind] += to - from;
        // Compaction may have removed the record after it was stored.
        if (kind === 'gap') continue;
        for (const trace of traces)
          if (isRow(trace) && trace.offset >= from && trace.offset < to)
            offenders.unexpected.add(trace.offset);
      }
    },
    result: () => ({
      ...counts,
      control: skippedCounts.control,
      aborted: skippedCounts.aborted,
      gaps: skippedCounts.gap,
      missing: offenders.missing.all(),
      different: offenders.different.all(),
      unexpected: offenders.unexpected.all(),
    }),
  };
}

function createOffenders() {
  const first: bigint[] = [];
  let count = 0;
  return {
    add(offset: bigint): void {
      count += 1;
      if (first.length < namedOffenders) first.push(offset);
    },
    all: (): Offenders => ({ count, first }),
  };
}
