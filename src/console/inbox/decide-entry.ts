import { AppError } from '../../kernel/errors.ts';

/** What is decided about an entry; null where nothing is. */
export type Decided = Readonly<{
  owner: Readonly<{ subject: string; name: string }> | null;
  snooze: Readonly<{ count: number; by: string }> | null;
  done: Readonly<{ by: string; reason: string }> | null;
}>;

export type EntryChange =
  | Readonly<{ change: 'assign'; owner: Decided['owner']; mayTakeOver: boolean; by: string }>
  | Readonly<{ change: 'snooze'; growsBy: number; by: string }>
  | Readonly<{ change: 'wake' }>
  | Readonly<{ change: 'done'; reason: string; by: string }>
  | Readonly<{ change: 'reopen' }>;

/**
 * The decision after a change, or null if it says so already. Throws if it would undo what somebody else decided.
 * `count` is the number of items now; `isDone`: nothing has arrived since it was done.
 */
export function decideEntry(
  before: Decided,
  change: EntryChange,
  { count, isDone }: Readonly<{ count: number; isDone: boolean }>,
): Decided | null {
  const { owner, snooze, done } = before;
  switch (change.change) {
    case 'assign': {
      if (owner?.subject === change.owner?.subject) return null;
      if (owner !== null && owner.subject !== change.by && !change.mayTakeOver)
        throw conflict(`it is assigned to ${owner.name}; take_over changes that`);
      return { ...before, owner: change.owner };
    }
    case 'snooze': {
      if (count === 0) throw conflict('it is done: its items are gone');
      if (isDone) throw conflict(`it is done, by ${done?.by ?? 'nobody'}`);
      const until = count + change.growsBy;
      return snooze?.count === until
        ? null
        : { ...before, snooze: { count: until, by: change.by }, done: null };
    }
    case 'wake':
      return snooze === null ? null : { ...before, snooze: null };
    case 'done': {
      if (count === 0) throw conflict('it is done: its items are gone');
      if (!isDone || done === null)
        return { ...before, snooze: null, done: { by: change.by, reason: change.reason } };
      if (done.by === change.by && done.reason === change.reason) return null;
      throw conflict(`it is done already, by ${done.by}: ${done.reason}`);
    }
    case 'reopen':
      return done === null ? null : { ...before, done: null };
  }
}

function conflict(why: string): AppError {
  return new AppError('SYS_CONSOLE_CONFLICT', 'conflict', `the entry is not changed: ${why}`);
}
