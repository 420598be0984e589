import { AppError, messageOf } from '../../kernel/errors.ts';
import { isOutage, publishClaimed, type Published } from './publish-claimed.ts';
import type { AttemptOutcome, ClaimedBatch, ClaimManyOptions, Keyset, RetryAllStart } from './ports.ts';
import type { RetryDeps } from './retry-message.ts';

/**
 * Retries everything retryable of a topic, each message at most once per call: rows touched or stored since
 * the call began are left out.
 *
 * The next batch is claimed while the current one is published, but it is published only when the current one
 * is settled: a process that dies leaves at most one batch sent and not settled. Every claim runs inside the
 * gate, so that a message which must run alone really does. A broker that is away ends the call; what was
 * claimed and not sent is given back, what was not claimed is untouched.
 */
export type RetryAllDeps = RetryDeps & Readonly<{ stopping: AbortSignal; batchSize: number }>;

export type RetryAllAnswer = Readonly<{
  retried: number;
  failed: number;
  /** Left PENDING because it is not known where they belong. */
  unroutable: number;
  /** Left PENDING because the call ended, or their lease ran short, before they were sent. */
  skipped: number;
}>;

type Tally = { -readonly [Field in keyof RetryAllAnswer]: number } & { ended: string | null };

export async function retryAll(deps: RetryAllDeps, topic: string, actor: string): Promise<RetryAllAnswer> {
  // Messages of lost workers first become claimable, or dead.
  while ((await deps.store.reap()) > 0);
  const since = await deps.store.startRetryAll();
  const isDlqTopic = deps.isDeadLetterTopic(topic);
  const routes = deps.routesOf(topic);
  const tally: Tally = { retried: 0, failed: 0, unroutable: 0, skipped: 0, ended: null };

  await retryStream(deps, tally, {
    topic,
    by: 'original',
    actor,
    since,
    reroute: isDlqTopic ? routes : { ...routes, misnamed: null },
    onlyUnroutable: isDlqTopic && routes.misnamed === null,
  });
  await retryStream(deps, tally, {
    topic,
    by: 'source',
    actor,
    since,
    reroute: { unroutable: null, misnamed: null },
    onlyUnroutable: false,
  });
  if (tally.ended === null)
    tally.unroutable += await deps.store.countUnroutable(topic, isDlqTopic && routes.misnamed === null);

  if (tally.ended !== null && tally.retried === 0) throw brokerAway(tally.ended);
  const { ended: _, ...answer } = tally;
  return answer;
}

type Stream = Pick<ClaimManyOptions, 'topic' | 'by' | 'actor' | 'reroute' | 'onlyUnroutable'> &
  Readonly<{ since: RetryAllStart }>;

async function retryStream(deps: RetryAllDeps, tally: Tally, stream: Stream): Promise<void> {
  await retryTogether(deps, tally, stream);
  await retryAlone(deps, tally, stream);
}

const hintResetMs = 1000;

/** Never more than two batches are claimed: the one being published and the next. */
async function retryTogether(deps: RetryAllDeps, tally: Tally, stream: Stream): Promise<void> {
  const hint = createHint(deps);
  let current = openBatch(deps, tally, { stream, hint, turn: Promise.resolve() });
  while ((await current.claimed) && mayGoOn(deps, tally)) {
    const next = openBatch(deps, tally, { stream, hint, turn: current.done });
    await current.done;
    current = next;
  }
  await current.done;
}

type OpenBatch = Readonly<{
  /** Whether it is worth claiming another one after it. */
  claimed: Promise<boolean>;
  /** Settled, or given back. */
  done: Promise<void>;
}>;

/** Claims a batch at once, and publishes it when its turn has come. */
function openBatch(
  deps: RetryAllDeps,
  tally: Tally,
  { stream, hint, turn }: Readonly<{ stream: Stream; hint: Hint; turn: Promise<void> }>,
): OpenBatch {
  const claimed = Promise.withResolvers<boolean>();
  const done = deps.gate.together(async () => {
    try {
      const after = hint.value();
      const batch = await deps.store.claimMany({ ...stream, limit: deps.batchSize, alone: false, after });
      hint.advance(batch.last);
      claimed.resolve(batch.messages.length > 0 || after !== null);
      // If the batch before has failed, the call is over and this one is given back.
      await turn.catch(() => {});
      await finishBatch(deps, tally, batch, stream.actor);
    } catch (error) {
      tally.ended ??= messageOf(error);
      claimed.resolve(false);
      throw error;
    }
  });
  // Whoever awaits it gets the failure; until then it must not count as unhandled.
  done.catch(() => {});
  return { claimed: claimed.promise, done };
}

/** One at a time, with nothing else of this slice under way in the process. */
async function retryAlone(deps: RetryAllDeps, tally: Tally, stream: Stream): Promise<void> {
  for (let more = true; more && mayGoOn(deps, tally);) {
    more = await deps.gate.alone(async () => {
      const batch = await deps.store.claimMany({ ...stream, limit: 1, alone: true, after: null });
      await finishBatch(deps, tally, batch, stream.actor);
      return batch.messages.length > 0;
    });
  }
}

function mayGoOn(deps: RetryAllDeps, tally: Tally): boolean {
  return tally.ended === null && !deps.stopping.aborted;
}

async function finishBatch(
  deps: RetryAllDeps,
  tally: Tally,
  batch: ClaimedBatch,
  actor: string,
): Promise<void> {
  if (batch.messages.length === 0) return;
  const published = mayGoOn(deps, tally)
    ? await publishClaimed(deps, batch)
    : givenBack(batch, 'the call ended before it was sent');
  for (const one of published.values()) count(deps, tally, one);
  const outcomes = new Map([...published].map(([id, one]) => [id, one.outcome]));
  await deps.store.settle(batch.lease, outcomes, actor);
}

function givenBack(batch: ClaimedBatch, reason: string): ReadonlyMap<string, Published> {
  const outcome: AttemptOutcome = { end: 'released', reason };
  return new Map(batch.messages.map((message) => [message.id, { outcome, result: null }]));
}

function count(deps: RetryAllDeps, tally: Tally, { outcome, result, isUnroutable }: Published): void {
  deps.onAttempt(outcome.end);
  if (outcome.end === 'published' || outcome.end === 'not_published') tally.retried += 1;
  else if (outcome.end === 'failed' || outcome.end === 'unknown') tally.failed += 1;
  else if (isUnroutable === true) tally.unroutable += 1;
  else tally.skipped += 1;
  if (isOutage(result) && result !== null && 'code' in result)
    tally.ended ??= `${result.code}: ${result.message}`;
}

type Hint = Readonly<{ value(): Keyset | null; advance(last: Keyset | null): void }>;

/**
 * Where the next scan begins. Under a long-running transaction elsewhere the index keeps entries of rows that
 * are done; beginning behind them keeps the claim fast. It goes back to the start every second, because a row
 * that somebody had locked in passing may be free again.
 */
function createHint(deps: RetryAllDeps): Hint {
  let keyset: Keyset | null = null;
  let resetAtMs = deps.clock.monotonicMs() + hintResetMs;
  return {
    value() {
      if (deps.clock.monotonicMs() < resetAtMs) return keyset;
      resetAtMs = deps.clock.monotonicMs() + hintResetMs;
      return null;
    },
    advance(last) {
      keyset = last;
    },
  };
}

function brokerAway(reason: string): AppError {
  return new AppError('SYS_DLQ_BROKER_UNAVAILABLE', 'unavailable', `no message was retried: ${reason}`, {
    details: [{ field: 'broker', reason: 'unavailable', message: reason }],
    retryAfterMs: 5000,
  });
}
