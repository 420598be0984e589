import { randomUUID } from 'node:crypto';
import type { Act, ActResult } from '../../kernel/audit/act.ts';
import { codeOf } from '../../kernel/errors.ts';
import type { Queryable } from '../postgres/database.ts';
import { recordAct } from './record-act.ts';

/** What an operation did, once it has ended. */
export type OperationEnd = Readonly<Required<Pick<ActResult, 'items' | 'detail'>>>;

/**
 * An act that changes many items in several transactions. The row `started` is committed before the first change, and
 * the row with the result after the last one; both have the operation's id. A `started` row alone says that the process
 * ended meanwhile.
 */
export async function recordOperation<Result>(
  db: Queryable,
  act: Act,
  about: Pick<ActResult, 'resource' | 'names' | 'detail' | 'items'>,
  operation: Readonly<{
    run: (operationId: string) => Promise<Result>;
    endOf: (result: Result) => OperationEnd;
  }>,
): Promise<Result> {
  const operationId = randomUUID();
  const { resource, names = {} } = about;
  await recordAct(db, act, { ...about, operationId, outcome: 'started' });
  let result: Result;
  try {
    result = await operation.run(operationId);
  } catch (error) {
    // If this row cannot be written either, the first error says more.
    await recordAct(db, act, {
      resource,
      names,
      operationId,
      outcome: 'failure',
      items: 0,
      detail: { error: codeOf(error) ?? 'unexpected' },
    }).catch(() => {});
    throw error;
  }
  await recordAct(db, act, { resource, names, operationId, ...operation.endOf(result) });
  return result;
}
