import { AppError } from '../../kernel/errors.ts';
import { isUuid } from '../../kernel/uuid.ts';
import type { HistoryEntry, Message, MessageReader, MessageBody } from './ports.ts';

export function messageNotFound(id: string): AppError {
  return new AppError('SYS_DLQ_NOT_FOUND', 'not_found', `dlq message not found: ${id}`);
}

/** An id from outside: refused before it reaches the database, in the words that callers know. */
export function parseMessageId(text: string): string {
  if (!isUuid(text))
    throw new AppError('SYS_DLQ_VALIDATION_ERROR', 'validation', `invalid message id: ${text.slice(0, 100)}`);
  return text.toLowerCase();
}

export async function getMessage(reader: MessageReader, id: string): Promise<Message> {
  const message = await reader.find(id);
  if (message === null) throw messageNotFound(id);
  return message;
}

export async function getRawMessage(reader: MessageReader, id: string): Promise<MessageBody> {
  const raw = await reader.findRaw(id);
  if (raw === null) throw messageNotFound(id);
  return raw;
}

/** Outlives the message: a deleted one still tells what happened to it. */
export async function getHistory(reader: MessageReader, id: string): Promise<readonly HistoryEntry[]> {
  const history = await reader.history(id);
  if (history.length === 0) await getMessage(reader, id);
  return history;
}
