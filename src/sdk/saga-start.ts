import { AppError } from '../kernel/errors.ts';
import { findUnsafeInput } from '../kernel/unsafe-input.ts';
import { sql } from '../platform/postgres/sql.ts';
import type { SagaWorkflow } from './saga-builder.ts';
import { traceparentOf } from './traceparent.ts';
import { askClient, requireClient, type Transaction } from './transaction.ts';
import { writeJson } from './write-json.ts';

export type StartOptions = Readonly<{
  /** The same key again means the same saga; 1 to 255 visible ASCII characters. */
  key?: string | undefined;
  /** What it belongs to in the business; up to 255 characters. */
  correlationId?: string | undefined;
  /** Who began it; up to 255 characters. */
  initiatedBy?: string | undefined;
  /** Where its calls belong in a trace; by default below the active OpenTelemetry span. */
  traceparent?: string | undefined;
}>;

/**
 * `replayed`: a saga was begun with this key and the same contents before. `mismatch`: with other contents; nothing was
 * begun. `unknown_workflow`: no such workflow is registered.
 */
export type StartedSaga =
  | Readonly<{ outcome: 'started' | 'replayed'; sagaId: string }>
  | Readonly<{ outcome: 'mismatch' | 'unknown_workflow'; sagaId: null }>;

const maxPayloadBytes = 1024 * 1024;

/**
 * Begins a saga in the caller's transaction: with its commit the saga goes on by itself, with its rollback it never
 * was. What can never be stored is refused with an error before the database is asked.
 */
export async function startSaga<Input>(
  tx: Transaction,
  workflow: string | SagaWorkflow<Input>,
  payload: Input,
  options: StartOptions = {},
): Promise<StartedSaga> {
  requireClient('saga.start(tx, workflow, payload)', tx);
  const name = typeof workflow === 'string' ? workflow : workflow.name;
  const { key = null, correlationId = null, initiatedBy = null } = options;
  const flaw =
    flawOfText('workflow', name) ??
    (key === null || /^[!-~]{1,255}$/.test(key) ? null : 'key is 1 to 255 visible ASCII characters') ??
    flawOfText('correlationId', correlationId) ??
    flawOfText('initiatedBy', initiatedBy);
  if (flaw !== null) throw refused(flaw);
  const statement = sql`
    SELECT saga_id::text AS saga_id, outcome
    FROM saga.start_saga(
      p_workflow_name => ${name}::text, p_payload => ${payloadText(payload)}::jsonb,
      p_correlation_id => ${correlationId}::text, p_initiated_by => ${initiatedBy}::text, p_key => ${key}::text,
      p_trace => ${traceparentOf(options.traceparent)}::text)`;
  const [row] = await askClient(tx, statement, { call: 'saga.start', slice: 'saga' });
  return startedOf(row as StartedRow);
}

type StartedRow = Readonly<{ saga_id: string | null; outcome: StartedSaga['outcome'] }>;

function startedOf({ saga_id, outcome }: StartedRow): StartedSaga {
  if (outcome === 'mismatch' || outcome === 'unknown_workflow') return { outcome, sagaId: null };
  return { outcome, sagaId: saga_id ?? '' };
}

function payloadText(payload: unknown): string {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload))
    throw refused('payload is an object');
  // As deep as over HTTP, where it is a part of the body.
  const unsafe = findUnsafeInput({ payload }, 'payload');
  if (unsafe !== null) throw refused(`${unsafe.field} ${unsafe.message}`);
  const written = writeJson('payload', payload);
  if ('reason' in written) throw refused(written.reason);
  if (Buffer.byteLength(written.text) > maxPayloadBytes)
    throw refused(`payload is JSON of up to ${maxPayloadBytes} bytes`);
  return written.text;
}

function flawOfText(field: string, text: string | null): string | null {
  if (text === null) return null;
  const isFine = typeof text === 'string' && text !== '' && text.length <= 255 && !text.includes('\0');
  return isFine && text.isWellFormed() ? null : `${field} is text of 1 to 255 characters`;
}

function refused(reason: string): AppError {
  return new AppError('SYS_SAGA_INVALID', 'validation', `saga.start: ${reason}`);
}
