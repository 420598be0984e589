import { AppError } from '../../kernel/errors.ts';
import { getMessage } from './find-message.ts';
import type { ActionStore, Message, MessageReader, PersonAction } from './ports.ts';

/** What a person decides about a message: give up on it, give it a new budget, or delete it. */
export type ActionDeps = Readonly<{ reader: MessageReader; actions: ActionStore }>;

export async function markMessageDead(deps: ActionDeps, action: PersonAction): Promise<Message> {
  if (!(await deps.actions.markDead(action))) throw await refusal(deps, action.id, 'marked dead');
  return getMessage(deps.reader, action.id);
}

export async function reopenMessage(deps: ActionDeps, action: PersonAction): Promise<Message> {
  if (!(await deps.actions.reopen(action))) throw await refusal(deps, action.id, 'reopened');
  return getMessage(deps.reader, action.id);
}

export async function deleteMessage(deps: ActionDeps, action: PersonAction): Promise<void> {
  if (!(await deps.actions.remove(action))) throw await refusal(deps, action.id, 'deleted');
}

async function refusal(deps: ActionDeps, id: string, what: string): Promise<AppError> {
  const message = await getMessage(deps.reader, id);
  const state = `status=${message.status}, retry_count=${message.retryCount}/${message.maxRetries}`;
  const why = message.isArchived
    ? 'archived, reopen it first'
    : message.leaseIsLive
      ? 'a retry is running'
      : state;
  return new AppError('SYS_DLQ_CONFLICT', 'conflict', `message cannot be ${what}: ${why}`);
}
