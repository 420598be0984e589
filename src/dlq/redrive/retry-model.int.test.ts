import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { testAct } from '../../../tests/support/acts.ts';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import {
  endAttempt,
  isDeletable,
  markDead,
  reopen,
  startAttempt,
  type AttemptEnd,
} from '../../../tests/support/dlq-message-model.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { codeOf } from '../../kernel/errors.ts';
import { releaseReasons, type MessageState } from '../domain/message.ts';
import { findHead } from '../browse/find-message.ts';
import { deleteMessage, markMessageDead, reopenMessage, type ActionDeps } from '../decide/act-on-message.ts';
import type { ClaimedBatch } from './claim-messages.ts';
import { claimMessage } from './retry-message.ts';
import { reapAttempts, settleAttempts, type AttemptOutcome } from './settle-messages.ts';

/** Runs the same random commands against the SQL and the model: both must agree on every result and every state. */
let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const commands = [
  'start',
  'acked',
  'failed',
  'unknown',
  ...releaseReasons.map((reason) => `released: ${reason}` as const),
  'stale settle',
  'lose lease',
  'reap',
  'mark dead',
  'reopen',
  'delete',
] as const;

const outcomes: Readonly<Record<string, AttemptOutcome>> = {
  acked: { end: 'published', partition: 1, offset: 7n },
  failed: { end: 'failed', error: 'TOO_LARGE: no' },
  unknown: { end: 'unknown', error: 'TIMEOUT: no answer' },
  ...Object.fromEntries(
    releaseReasons.map((reason) => [`released: ${reason}`, { end: 'released', reason } as const]),
  ),
};

test('the SQL and the model agree on every command in every state', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.array(fc.constantFrom(...commands), { minLength: 5, maxLength: 40 }),
      runWalk,
    ),
    { numRuns: 60 },
  );
});

async function runWalk(maxRetries: number, walk: readonly (typeof commands)[number][]): Promise<void> {
  const { db } = database;
  const worker = createTestWorker(db);
  const retries = { worker, leaseMs: 60_000, onSettleRetry: () => {} };
  const actions: ActionDeps = {
    db,
    findHead: (one) => findHead(db, one),
    reap: (one) => reapAttempts(db, one),
    isDeadLetterTopic: () => false,
  };
  const [row] = await db.query<{ id: string }>(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, max_retries, payload)
    VALUES ('orders.v1', 'processing failed', ${maxRetries}, '{"a":1}') RETURNING id`);
  const id = row?.id ?? '';
  const person = { id, actor: 'tester', reason: 'because', act: testAct('dlq:messages:reopen', 'because') };
  let state: MessageState = {
    status: 'PENDING',
    retryCount: 0,
    maxRetries,
    attemptNo: 0,
    leaseIsLive: false,
  };
  let claim: ClaimedBatch | null = null;

  for (const command of walk) {
    const before = state;
    switch (command) {
      case 'start': {
        // The claim takes PENDING messages only: an expired attempt is reaped first.
        const next = state.status === 'PENDING' ? startAttempt(state) : null;
        const batch = await claimMessage(retries, {
          id,
          actor: 'tester',
          recorded: { act: testAct('dlq:messages:retry'), operationId: randomUUID() },
          runsAlone: true,
          reroute: { unroutable: null, misnamed: null },
        });
        assert.equal(batch.messages.length === 1, next !== null, command);
        if (next !== null) [state, claim] = [next, batch];
        break;
      }
      case 'stale settle': {
        if (claim === null) break;
        const staleBefore = worker.stale.count;
        const old = { ...claim.lease, epoch: claim.lease.epoch - 1n };
        const outcomes = new Map([[id, { end: 'published', partition: 0, offset: 0n } as const]]);
        await settleAttempts(retries, { lease: old, outcomes, actor: 'tester' });
        assert.equal(worker.stale.count, staleBefore + 1, 'a settle of an older epoch is counted as stale');
        break;
      }
      case 'lose lease':
        if (state.status !== 'RETRYING') break;
        await db.query(
          sql`UPDATE dlq.dlq_messages SET lease_until = now() - interval '1 s' WHERE id = ${id}`,
        );
        state = { ...state, leaseIsLive: false };
        break;
      case 'reap': {
        const next = endAttempt(state, 'lease_expired');
        assert.equal(await reapAttempts(db, id), next === null ? 0 : 1, command);
        if (next !== null) [state, claim] = [next, null];
        break;
      }
      case 'mark dead': {
        const next = markDead(state);
        assert.equal(await isAccepted(markMessageDead(actions, person)), next !== null, command);
        if (next !== null) [state, claim] = [next, null];
        break;
      }
      case 'reopen': {
        const next = reopen(state);
        assert.equal(await isAccepted(reopenMessage(actions, person)), next !== null, command);
        if (next !== null) [state, claim] = [next, null];
        break;
      }
      case 'delete':
        if (isDeletable(state)) break;
        assert.equal(
          await isAccepted(deleteMessage(actions, person)),
          false,
          'a live attempt cannot be deleted',
        );
        break;
      case 'acked':
      case 'failed':
      case 'unknown':
      case 'released: cluster':
      case 'released: target':
      case 'released: unroutable':
      case 'released: not_allowed':
      case 'released: no_value':
      case 'released: no_time':
      case 'released: not_loaded':
      case 'released: unreadable':
      case 'released: blocked':
      case 'released: call_ended': {
        if (claim === null) break;
        const outcome = outcomes[command];
        assert.ok(outcome !== undefined);
        const next = endAttempt(state, modelEnd(outcome));
        const settled = await settleAttempts(retries, {
          lease: claim.lease,
          outcomes: new Map([[id, outcome]]),
          actor: 'tester',
        });
        if (next !== null) {
          state = next;
          assert.equal(await lastDetail(id), detailOf(outcome), 'the history says why');
        }
        assert.equal(settled.get(id), state.status, command);
      }
    }
    assert.deepEqual(await readState(id), state, `${command} on ${JSON.stringify(before)}`);
  }
  assert.equal(await isAccepted(deleteMessage(actions, person)), isDeletable(state));
}

/** False if the action was refused with a conflict. */
async function isAccepted(action: Promise<void>): Promise<boolean> {
  try {
    await action;
    return true;
  } catch (error) {
    assert.equal(codeOf(error), 'SYS_DLQ_CONFLICT');
    return false;
  }
}

function modelEnd({ end }: AttemptOutcome): AttemptEnd {
  if (end === 'released') return 'released';
  return end === 'failed' || end === 'unknown' ? 'failed' : 'acked';
}

function detailOf(outcome: AttemptOutcome): string | null {
  if (outcome.end === 'released') return outcome.reason;
  return outcome.end === 'failed' || outcome.end === 'unknown' ? outcome.error : null;
}

async function lastDetail(id: string): Promise<string | null | undefined> {
  const rows = await database.db.query<{ detail: string | null }>(sql`
    SELECT detail FROM dlq.message_history WHERE message_id = ${id} ORDER BY id DESC LIMIT 1`);
  return rows[0]?.detail;
}

async function readState(id: string): Promise<MessageState | undefined> {
  const rows = await database.db.query<MessageState>(sql`
    SELECT status, retry_count AS "retryCount", max_retries AS "maxRetries", attempt_no AS "attemptNo",
           COALESCE(lease_until > now(), false) AS "leaseIsLive"
    FROM dlq.dlq_messages WHERE id = ${id}`);
  return rows[0];
}
