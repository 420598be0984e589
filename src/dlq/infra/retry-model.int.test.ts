import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sql } from '../../platform/postgres/sql.ts';
import {
  endAttempt,
  giveUp,
  isDeletable,
  reopen,
  startAttempt,
  type MessageState,
} from '../domain/message.ts';
import type { AttemptOutcome, ClaimedBatch } from '../usecase/ports.ts';
import { createPostgresActionStore } from './postgres-action-store.ts';
import { createPostgresRetryStore } from './postgres-retry-store.ts';

/**
 * Drives the SQL of the slice and the pure state machine with the same random commands: both must agree on
 * every answer and on every state, so the WHERE and SET clauses cannot drift from the rules.
 */
let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const commands = [
  'start',
  'acked',
  'failed',
  'unknown',
  'released',
  'stale settle',
  'lose lease',
  'reap',
  'give up',
  'reopen',
  'delete',
] as const;

const outcomes: Readonly<Record<string, AttemptOutcome>> = {
  acked: { end: 'published', partition: 1, offset: 7n },
  failed: { end: 'failed', error: 'TOO_LARGE: no' },
  unknown: { end: 'unknown', error: 'TIMEOUT: no answer' },
  released: { end: 'released', reason: 'stopping' },
};

test('the SQL and the state machine agree on every command in every state', async () => {
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
  const retries = createPostgresRetryStore(worker, { leaseMs: 60_000, onSettleRetry: () => {} });
  const actions = createPostgresActionStore(db);
  const [row] = await db.query<{ id: string }>(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, max_retries, payload)
    VALUES ('orders.v1', 'processing failed', ${maxRetries}, '{"a":1}') RETURNING id`);
  const id = row?.id ?? '';
  const person = { id, actor: 'tester', reason: 'because' };
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
        // The claim takes PENDING only: an expired attempt is reaped first, as the use case does it.
        const next = state.status === 'PENDING' ? startAttempt(state) : null;
        const batch = await retries.claimOne({
          id,
          actor: 'tester',
          alone: true,
          reroute: { unroutable: null, misnamed: null },
        });
        assert.equal(batch.messages.length === 1, next !== null, command);
        if (next !== null) [state, claim] = [next, batch];
        break;
      }
      case 'acked':
      case 'failed':
      case 'unknown':
      case 'released': {
        if (claim === null) break;
        const next = endAttempt(state, command === 'unknown' ? 'failed' : command);
        const outcome = outcomes[command];
        assert.ok(outcome !== undefined);
        const settled = await retries.settle(claim.lease, new Map([[id, outcome]]), 'tester');
        if (next !== null) state = next;
        assert.equal(settled.statuses.get(id), state.status, command);
        break;
      }
      case 'stale settle': {
        if (claim === null) break;
        const staleBefore = worker.stale.count;
        const old = { ...claim.lease, epoch: claim.lease.epoch - 1n };
        await retries.settle(old, new Map([[id, { end: 'published', partition: 0, offset: 0n }]]), 'tester');
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
        const next = endAttempt(state, 'lease_over');
        assert.equal(await retries.reap(id), next === null ? 0 : 1, command);
        if (next !== null) [state, claim] = [next, null];
        break;
      }
      case 'give up': {
        const next = giveUp(state);
        assert.equal(await actions.markDead(person), next !== null, command);
        if (next !== null) [state, claim] = [next, null];
        break;
      }
      case 'reopen': {
        const next = reopen(state);
        assert.equal(await actions.reopen(person), next !== null, command);
        if (next !== null) [state, claim] = [next, null];
        break;
      }
      case 'delete':
        if (isDeletable(state)) break;
        assert.equal(await actions.remove(person), false, 'a live attempt cannot be deleted');
        break;
    }
    assert.deepEqual(await readState(id), state, `${command} on ${JSON.stringify(before)}`);
  }
  assert.equal(await actions.remove(person), isDeletable(state));
}

async function readState(id: string): Promise<MessageState | undefined> {
  const rows = await database.db.query<MessageState>(sql`
    SELECT status, retry_count AS "retryCount", max_retries AS "maxRetries", attempt_no AS "attemptNo",
           COALESCE(lease_until > now(), false) AS "leaseIsLive"
    FROM dlq.dlq_messages WHERE id = ${id}`);
  return rows[0];
}
