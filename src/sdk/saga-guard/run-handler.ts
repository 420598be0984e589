import type { StoredAnswer } from './decide-guarded-call.ts';
import { answerOf, answerOfRefusal, SagaRefusal } from './guard-reply.ts';
import type { GuardTransaction } from './guard-transaction.ts';

export type Handled = Readonly<{ outcome: 'done' | 'refused'; answer: StoredAnswer }>;

/**
 * Runs a handler in a savepoint, so that a refusal rolls back what the handler wrote and keeps the guard's row. Releasing
 * the savepoint also proves that it is still the same transaction: it fails if the handler has committed or rolled back.
 */
export async function runHandler(
  { client, endWait }: GuardTransaction,
  handler: () => unknown,
): Promise<Handled> {
  await endWait();
  await client.query('SAVEPOINT redrive_saga_guard');
  const handled = await outcomeOf(handler);
  if (handled.outcome === 'refused') await client.query('ROLLBACK TO SAVEPOINT redrive_saga_guard');
  await client.query('RELEASE SAVEPOINT redrive_saga_guard');
  return handled;
}

async function outcomeOf(handler: () => unknown): Promise<Handled> {
  let value: unknown;
  try {
    value = await handler();
  } catch (error) {
    if (!(error instanceof SagaRefusal)) throw error;
    value = error;
  }
  if (value instanceof SagaRefusal) return { outcome: 'refused', answer: answerOfRefusal(value) };
  return { outcome: 'done', answer: answerOf(value) };
}
