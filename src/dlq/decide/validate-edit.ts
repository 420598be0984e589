import { AppError, messageOf, type ErrorDetail } from '../../kernel/errors.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { refuseEdit } from '../domain/message-edit.ts';
import { isText } from '../present.ts';
import { examineTarget, type ExaminedTarget, type ExaminingBroker } from './examine-target.ts';
import {
  explainRefusal,
  readEditable,
  requireTarget,
  type Changes,
  type EditDeps,
  type EditedState,
} from './edit-message.ts';

export type ValidateDeps = EditDeps & Readonly<{ broker: ExaminingBroker | null }>;

export type Draft = Readonly<{
  id: string;
  /** Throws what an edit with this body would be refused for. */
  readChanges: () => Changes;
  /** Of the states that the caller has read; null if it did not say. */
  tags: readonly string[] | null;
  maySendTwice: boolean;
}>;

export const valueFormats = ['null', 'json', 'text', 'binary'] as const;
type NewValue = Readonly<{ bytes: number | null; format: (typeof valueFormats)[number] }>;

/** What an edit would do. With a problem it would be refused; a warning is for the person to weigh. */
export type Validation = Readonly<{
  tag: string;
  /** That the edit would make. */
  version: number;
  problems: readonly AppError[];
  warnings: readonly ErrorDetail[];
  /** Null if the value stays. */
  value: NewValue | null;
  target: ExaminedTarget & Readonly<{ topic: string }>;
}>;

/**
 * Checks an edit as `editMessage` does, and what a retry of the new version would meet. Writes nothing, so the edit may
 * still be refused: for what changes meanwhile.
 */
export async function validateEdit(deps: ValidateDeps, draft: Draft): Promise<Validation> {
  const { id, tags, maySendTwice } = draft;
  const message = await readEditable(deps.db, id, sql``);
  if (message === null) throw await explainRefusal(deps, id, { refusal: 'not_found', message });
  const read = attempt(draft.readChanges);
  const changes = read instanceof AppError ? {} : read;
  const { targetTopic, value } = changes;
  const placed = attempt(() => (targetTopic === undefined ? null : requireTarget(deps, targetTopic)));
  const refusal = refuseEdit(message, {
    tags: tags ?? [message.tag],
    maySendTwice,
    givesValue: value !== undefined,
  });
  const refused = refusal === null ? null : await explainRefusal(deps, id, { refusal, message });

  const topic = targetTopic ?? message.originalTopic;
  const target =
    placed instanceof AppError
      ? ({ state: 'unknown', groups: null } as const)
      : await examineTarget(deps.broker, topic);
  return {
    tag: message.tag,
    version: message.version + 1,
    problems: [read, placed, refused].filter((problem) => problem instanceof AppError),
    warnings: warningsOf(message, changes, { ...target, topic }, deps),
    value: value === undefined ? null : describeValue(value, deps),
    target: { topic, ...target },
  };
}

/** What can be said about this edit is returned; a body that is no edit at all is still an error. */
function attempt<Found>(read: () => Found): Found | AppError {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError && error.kind === 'semantic') return error;
    throw error;
  }
}

function describeValue(value: Buffer | null, { isJson }: Pick<EditDeps, 'isJson'>): NewValue {
  if (value === null) return { bytes: null, format: 'null' };
  const format = isJson(value) ? 'json' : isText(value) ? 'text' : 'binary';
  return { bytes: value.length, format };
}

function warningsOf(
  message: EditedState,
  { value, targetTopic }: Changes,
  target: Validation['target'],
  { isJson }: Pick<EditDeps, 'isJson'>,
): readonly ErrorDetail[] {
  const warning = (field: string, reason: string, text: string): ErrorDetail => ({
    field,
    reason,
    message: text,
  });
  const warnings: ErrorDetail[] = [];
  if (value !== undefined && value !== null && message.hasPayload && !isJson(value))
    warnings.push(warning('value', 'not_json', `is not JSON, as it was before: ${whyNotJson(value)}`));
  if (value === null) warnings.push(warning('value', 'tombstone', 'is null: the record deletes its key'));
  if (target.state === 'missing' || target.state === 'denied')
    warnings.push(
      warning(
        'target_topic',
        target.state,
        `${target.topic} ${targetTroubles[target.state]}: a retry is refused`,
      ),
    );
  else if (target.groups?.length === 0)
    warnings.push(
      warning('target_topic', 'no_reader', `no consumer group has committed offsets of ${target.topic}`),
    );
  if (message.isUnroutable && targetTopic === undefined)
    warnings.push(warning('target_topic', 'unroutable', 'is not known: a retry is refused without one'));
  if (message.status === 'DEAD')
    warnings.push(warning('status', 'dead', 'stays DEAD: reopen the message before a retry'));
  return warnings;
}

const targetTroubles = { missing: 'does not exist', denied: 'may not be written to' } as const;

const maxReasonLength = 200;

function whyNotJson(value: Buffer): string {
  if (!isText(value)) return 'it is not UTF-8 text';
  try {
    JSON.parse(value.toString('utf8'));
    return 'it is outside of what PostgreSQL stores as JSON';
  } catch (error) {
    return messageOf(error).slice(0, maxReasonLength);
  }
}
