import type { NameFilter } from '../../kernel/access/scope.ts';
import { AppError, messageOf } from '../../kernel/errors.ts';
import { findBulkTargets } from './bulk-targets.ts';
import { countUntouched, findDueTargets, isKnownTopic, startBulk } from './bulk-queries.ts';
import { createKeyOrder } from './key-order.ts';
import { retryStream, type BulkCall, type BulkDeps } from './retry-stream.ts';
import { createRetryTally, type RetryAllResult } from './retry-tally.ts';
import { reapAttempts } from './settle-messages.ts';

export type RetryAllDeps = BulkDeps &
  Readonly<{ onRetriedAll: (topic: string, result: RetryAllResult) => void }>;

/**
 * Retries every retryable message of a topic, each at most once per call: rows touched or stored since the call began
 * are left out. It checks the targets first and does not claim messages for topics that do not exist or are not
 * writable. An outage ends the call; claimed messages that were not sent are released. The result counts every
 * message that was due. A narrowed role retries only messages whose original topic and target are in its scope.
 */
export async function retryAll(
  deps: RetryAllDeps,
  topic: string,
  actor: string,
  names: NameFilter = null,
): Promise<RetryAllResult> {
  const { db } = deps.worker;
  while ((await reapAttempts(db)) > 0);
  const since = await startBulk(db);
  const due = await findDueTargets(db, topic, names);
  const isEmpty = !due.hasOwn && due.others.length === 0;
  if (isEmpty && !(await isKnownTopic(db, topic, names))) throw topicNotFound(topic);
  const targets = await findBulkTargets({ ...deps, names }, topic, due).catch((error: unknown) => {
    throw unavailable(messageOf(error));
  });

  const order = deps.republishKey === 'original' ? createKeyOrder() : null;
  const call: BulkCall = { topic, names, actor, since, targets, order, tally: createRetryTally() };
  await retryStream(deps, call, 'original');
  await retryStream(deps, call, 'source');
  await addUntouched(deps, call);

  const result = call.tally.result();
  deps.onRetriedAll(topic, result);
  if (result.ended !== null && call.tally.hasOutage() && result.retried === 0)
    throw unavailable(result.ended, result);
  return result;
}

/** Counts due messages that no claim found: excluded, locked, or not reached when the call ended. */
async function addUntouched(
  deps: RetryAllDeps,
  { topic, names, since, targets, tally }: BulkCall,
): Promise<void> {
  const hasEnded = tally.ended() !== null || deps.stopping.aborted;
  for (const group of await countUntouched(deps.worker.db, { topic, names, since })) {
    const reason = targets.reasonFor(group);
    if (reason !== null) tally.exclude(reason, group.target, group.count);
    else tally.add(hasEnded ? 'remaining' : 'skipped', group.count);
  }
}

function topicNotFound(topic: string): AppError {
  return new AppError('SYS_DLQ_NOT_FOUND', 'not_found', `dlq topic not found: ${topic}`);
}

function unavailable(reason: string, result?: RetryAllResult): AppError {
  const left = result === undefined ? '' : `; ${result.remaining} remaining, ${result.failed} failed`;
  const message = `no message was retried: ${reason}${left}`;
  return new AppError('SYS_DLQ_BROKER_UNAVAILABLE', 'unavailable', message, {
    details: [{ field: 'broker', reason: 'unavailable', message: reason }],
    retryAfterMs: 5000,
  });
}
