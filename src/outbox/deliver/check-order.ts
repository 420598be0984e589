import { messageOf } from '../../kernel/errors.ts';
import { MAX_JSON_BYTES } from '../../kernel/json-extent.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { errorText, isSafeToResend, type Settlement } from '../domain/order.ts';
import { lockLedger } from '../orders-table.ts';
import { askStatus, confirmed, stateOf, type Attempt, type AttemptResult } from './attempt.ts';
import type { ClaimedOrder } from './claim-orders.ts';

/**
 * The check before an order is sent. Null: send it. A result: settle it without sending.
 *
 * An order that was sent before is not sent again if the ledger records its effect. If it is in doubt and a second
 * send could have a second effect, it is sent again only if the destination says that the effect is missing.
 */

/** Validates the request: orders that were added in SQL have not been validated yet. */
export function checkFirstSend({ order, destination }: Attempt): AttemptResult | null {
  const refuse = (flaw: string): AttemptResult =>
    unsent(order, { to: 'unsendable', error: errorText('BAD_REQUEST', flaw) });
  if (isTooLarge(order)) return refuse(tooLarge);
  if (!destination.hasSchema) return null;
  const [flaw] = destination.flawsOf(JSON.parse(order.request));
  return flaw === undefined ? null : refuse(`${flaw.field} ${flaw.message}`);
}

export async function checkResend(
  attempt: Attempt,
  succeeded: ReadonlySet<string> | Error,
): Promise<AttemptResult | null> {
  const { order, destination } = attempt;
  if (succeeded instanceof Error) {
    const reason = `failed to read the ledger: ${messageOf(succeeded)}`;
    return unsent(order, { to: 'released', reason, delayMs: 0 });
  }
  if (succeeded.has(order.idempotencyKey)) return unsent(order, { to: 'known' });
  // The worker of its last attempt was lost: this claim only asks for its status.
  const isSpent = order.retryCount > destination.policy.retryMax;
  const maySend = !isTooLarge(order) && isSafeToResend(stateOf(attempt), destination.policy);
  if (isSpent || (order.inDoubt && !maySend)) {
    const answer = await askStatus(attempt);
    if (answer.known === 'done') return confirmed(order, answer.outcome);
    if (answer.known === 'silent' || isSpent) {
      const detail = answer.known === 'silent' ? answer.detail : 'the destination does not know it yet';
      const error = errorText('UNKNOWN', `an earlier attempt may have had its effect; ${detail}`);
      return unsent(order, { to: 'dead', error, inDoubt: true });
    }
  }
  if (!isTooLarge(order)) return null;
  const error = errorText('BAD_REQUEST', tooLarge);
  return unsent(order, { to: 'dead', error, inDoubt: order.inDoubt });
}

/**
 * The keys whose effect the ledger records, or the error if it cannot be read. Waits for transactions that are
 * deciding about them.
 */
export async function readSucceeded(
  db: Database,
  orders: readonly ClaimedOrder[],
): Promise<ReadonlySet<string> | Error> {
  const keys = orders.map(({ idempotencyKey }) => idempotencyKey);
  try {
    const rows = await db.transaction(async (tx) => {
      await lockLedger(tx, keys);
      return tx.query<{ idempotency_key: string }>(sql`
        SELECT idempotency_key FROM outbox.idempo_ledger
        WHERE idempotency_key = ANY(${keys}::text[]) AND status = 'succeeded'`);
    });
    return new Set(rows.map((row) => row.idempotency_key));
  } catch (error) {
    return error instanceof Error ? error : new Error(messageOf(error));
  }
}

const tooLarge = `request takes more than ${MAX_JSON_BYTES} bytes as text, which is the limit`;

/** Stored before the limit was introduced, or in spite of it; the claim leaves its request empty. */
function isTooLarge({ request }: ClaimedOrder): boolean {
  return request === '';
}

function unsent(order: ClaimedOrder, settlement: Settlement): AttemptResult {
  return { order, settlement, outcome: null };
}
