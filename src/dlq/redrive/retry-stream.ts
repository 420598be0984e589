import type { NameFilter } from '../../kernel/access/scope.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { Broker, PublishResult } from '../../platform/broker/port.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createClaimCursor, type ClaimCursor } from '../../platform/work/claim-cursor.ts';
import type { Keyset } from '../stored-message.ts';
import { inBulkCall, type BulkStart, type MatchBy } from './bulk-queries.ts';
import type { BulkTargets } from './bulk-targets.ts';
import { claimMessages, mustRunAlone, type ClaimedBatch, type ClaimedMessage } from './claim-messages.ts';
import { maxRefusedKeys, placeOf, type KeyOrder } from './key-order.ts';
import { forAll, isOutage, outcomesOf, publishClaimed, released, type Published } from './publish-claimed.ts';
import type { RetryDeps } from './retry-message.ts';
import type { RetryTally } from './retry-tally.ts';
import { settleAttempts } from './settle-messages.ts';

export type BulkDeps = RetryDeps &
  Readonly<{
    /** Null without a broker. */
    unwritable: Broker['unwritable'] | null;
    stopping: AbortSignal;
    batchSize: number;
  }>;

/** One bulk call: what it works on, and what it has found out so far. */
export type BulkCall = Readonly<{
  topic: string;
  /** The original topics that the caller may retry. */
  names: NameFilter;
  actor: string;
  since: BulkStart;
  targets: BulkTargets;
  tally: RetryTally;
  /** Null if every attempt gets a new key, so that there is no order to keep. */
  order: KeyOrder | null;
}>;

type Stream = Readonly<{
  call: BulkCall;
  by: MatchBy;
  /** Released through no fault of theirs; claimed again before new messages. */
  again: Map<string, ClaimedMessage>;
  /** How often each of them was released since the call last sent a message. */
  releases: Map<string, Readonly<{ times: number; sent: number }>>;
  cursor: ClaimCursor<Keyset>;
}>;

/** A message that is released this often while nothing else is sent is skipped. */
const maxReleases = 3;

/**
 * Retries the messages of a bulk call that match the topic in one of two ways: claim -> publish -> settle -> count, in
 * batches. The next batch is claimed while the current one is published, but published only after the current one is
 * settled: a process that dies leaves at most one batch sent and not settled. Every batch runs inside the gate, so
 * that messages that must run alone do.
 */
export async function retryStream(deps: BulkDeps, call: BulkCall, by: MatchBy): Promise<void> {
  const cursor = createClaimCursor<Keyset>(deps.worker.clock, { isAdaptive: false });
  const stream: Stream = { call, by, again: new Map(), releases: new Map(), cursor };
  do await retryTogether(deps, stream);
  while (stream.again.size > 0 && mayContinue(deps, call));
  await retryAlone(deps, stream);
  skipRest(deps, stream);
}

function mayContinue(deps: BulkDeps, { tally }: BulkCall): boolean {
  return tally.ended() === null && !deps.stopping.aborted;
}

/** Never more than two batches are claimed: the one being published and the next. */
async function retryTogether(deps: BulkDeps, stream: Stream): Promise<void> {
  if (!mayContinue(deps, stream.call)) return;
  let current = startBatch(deps, stream, Promise.resolve());
  while ((await current.claimed) && mayContinue(deps, stream.call)) {
    const next = startBatch(deps, stream, current.done);
    await current.done;
    current = next;
  }
  await current.done;
}

/** Messages that must run alone, one at a time, with no other retry in this process. */
async function retryAlone(deps: BulkDeps, stream: Stream): Promise<void> {
  for (let hasMore = true; hasMore && mayContinue(deps, stream.call);) {
    hasMore = await deps.gate.alone(async () => {
      const batch = await claimInTopic(deps, stream, { after: null, limit: 1, alone: true });
      await finishBatch(deps, stream, batch);
      return batch.messages.length > 0;
    });
  }
}

/** Messages that still wait are not sent in this call, and block their keys in the other stream. */
function skipRest(deps: BulkDeps, { call, again }: Stream): void {
  call.tally.add(mayContinue(deps, call) ? 'skipped' : 'remaining', again.size);
  for (const message of again.values()) {
    call.order?.resume(message);
    call.order?.refuse(message);
  }
}

type RunningBatch = Readonly<{
  /** Whether to claim another batch after it. */
  claimed: Promise<boolean>;
  /** Settled. */
  done: Promise<void>;
}>;

/** Claims a batch at once, and publishes it after the `previous` one is done. */
function startBatch(deps: BulkDeps, stream: Stream, previous: Promise<void>): RunningBatch {
  const { call } = stream;
  const claimed = Promise.withResolvers<boolean>();
  const done = deps.gate.together(async () => {
    try {
      const waiting = takeWaiting(stream, deps.batchSize);
      const batch =
        waiting.length > 0 ? await claimAgain(deps, stream, waiting) : await claimNext(deps, stream);
      claimed.resolve(waiting.length > 0 || batch.messages.length > 0);
      // If the previous batch failed, it has ended the call, and this batch is released.
      await previous.catch(() => {});
      for (const message of waiting) call.order?.resume(message);
      await finishBatch(deps, stream, batch);
    } catch (error) {
      call.tally.end(messageOf(error));
      claimed.resolve(false);
      throw error;
    }
  });
  // The caller awaits it later; until then a failure must not count as unhandled.
  done.catch(() => {});
  return { claimed: claimed.promise, done };
}

/** The earliest first, whenever they were released. */
function takeWaiting({ again }: Stream, limit: number): readonly ClaimedMessage[] {
  if (again.size === 0) return [];
  const taken = [...again.values()]
    .toSorted((a, b) => (placeOf(a.place) < placeOf(b.place) ? -1 : 1))
    .slice(0, limit);
  for (const { id } of taken) again.delete(id);
  return taken;
}

async function claimAgain(
  deps: BulkDeps,
  { call, by }: Stream,
  waiting: readonly ClaimedMessage[],
): Promise<ClaimedBatch> {
  const ids = waiting.map(({ id }) => id);
  const { reroute } = call.targets.routesFor(by);
  const where = sql`t.id = ANY(${ids}::uuid[]) AND NOT ${mustRunAlone}`;
  const batch = await claimMessages(deps, where, { actor: call.actor, limit: ids.length, reroute });
  // Another worker has the others: this call does not count them as retried.
  call.tally.add('skipped', waiting.length - batch.messages.length);
  return batch;
}

async function claimNext(deps: BulkDeps, stream: Stream): Promise<ClaimedBatch> {
  return stream.cursor.claim(async (after) => {
    const batch = await claimInTopic(deps, stream, { after, limit: deps.batchSize, alone: false });
    const count = batch.messages.length;
    return { ...batch, last: batch.messages.at(-1)?.place ?? null, count, isFull: count === deps.batchSize };
  });
}

async function claimInTopic(
  deps: BulkDeps,
  { call, by }: Stream,
  { after, limit, alone }: Readonly<{ after: Keyset | null; limit: number; alone: boolean }>,
): Promise<ClaimedBatch> {
  const { topic, names, since, actor, targets, order } = call;
  const { reroute, onlyUnroutable } = targets.routesFor(by);
  const excluded = {
    targets: targets.excluded(),
    notAllowed: targets.notAllowed(),
    keys: order?.refused() ?? [],
    valueless: deps.publish !== null,
  };
  const where = sql`${inBulkCall({ topic, names, by, since, after, onlyUnroutable, excluded })}
    AND ${alone ? mustRunAlone : sql`NOT ${mustRunAlone}`}`;
  return claimMessages(deps, where, { actor, limit, reroute });
}

/** publish -> settle -> count */
async function finishBatch(deps: BulkDeps, stream: Stream, batch: ClaimedBatch): Promise<void> {
  if (batch.messages.length === 0) return;
  const { call } = stream;
  const published = mayContinue(deps, call)
    ? await publishClaimed(deps, batch, call.order)
    : forAll(batch.messages, released('call_ended', 'the call ended before it was sent'));
  for (const { result } of published.values()) if (isOutage(result)) call.tally.end(describeOutage(result));

  await settleAttempts(deps, { lease: batch.lease, outcomes: outcomesOf(published), actor: call.actor });

  // After the settle, so that released messages can be claimed again.
  for (const message of batch.messages) {
    const one = published.get(message.id);
    if (one !== undefined) count(deps, stream, message, one);
  }
  if (call.order?.isFull() === true)
    call.tally.end(`messages with ${maxRefusedKeys} different keys were refused`, 'limit');
}

function describeOutage(result: PublishResult | null): string {
  return result !== null && 'code' in result ? `${result.code}: ${result.message}` : 'broker unavailable';
}

function count(deps: BulkDeps, stream: Stream, message: ClaimedMessage, published: Published): void {
  const { tally, targets, order } = stream.call;
  const { outcome, result, release } = published;
  deps.onAttempt(outcome.end);
  switch (release) {
    case null:
      return tally.add(outcome.end === 'failed' || outcome.end === 'unknown' ? 'failed' : 'retried');
    case 'target': {
      const isDenied = result !== null && 'code' in result && result.code.endsWith('_AUTHORIZATION_FAILED');
      const reason = targets.exclude(message.targetTopic, isDenied ? 'denied' : 'missing');
      return tally.exclude(reason, message.targetTopic);
    }
    case 'not_allowed':
      return tally.exclude('target_not_allowed', message.targetTopic);
    case 'unroutable':
    case 'no_value':
      return tally.exclude(release, message.targetTopic);
    case 'unreadable':
      return tally.add('skipped');
    case 'cluster':
    case 'call_ended':
      return tally.add('remaining');
    case 'blocked':
      if (tally.ended() !== null) return tally.add('remaining');
      return order?.blockedBy(message) === 'waiting' ? tryAgain(stream, message) : tally.add('skipped');
    case 'no_time':
    case 'not_loaded':
      return tryAgainOrSkip(stream, message);
  }
}

/**
 * Tries the message again as long as the call makes progress. A message that is released repeatedly while nothing
 * else is sent is skipped, and blocks its key.
 */
function tryAgainOrSkip(stream: Stream, message: ClaimedMessage): void {
  const { tally, order } = stream.call;
  const sent = tally.sent();
  const before = stream.releases.get(message.id);
  const times = before?.sent === sent ? before.times + 1 : 1;
  stream.releases.set(message.id, { times, sent });
  if (times < maxReleases) return tryAgain(stream, message);
  order?.refuse(message);
  tally.add('skipped');
}

function tryAgain({ again, call }: Stream, message: ClaimedMessage): void {
  again.set(message.id, message);
  call.order?.wait(message);
}
