import { AppError } from '../kernel/errors.ts';
import { findUnsafeInput } from '../kernel/unsafe-input.ts';
import { sql } from '../platform/postgres/sql.ts';
import { parseWorkflow } from '../saga/domain/workflow/parse-workflow.ts';
import { toStored, workflowHash } from '../saga/domain/workflow/workflow-hash.ts';
import type { SagaWorkflow } from './saga-builder.ts';
import { traceparentOf } from './traceparent.ts';
import { askClient, requireClient, type Transaction } from './transaction.ts';
import { writeJson } from './write-json.ts';

export type StartOptions = Readonly<{
  /** Starting again with the same key returns the same saga; 1 to 255 visible ASCII characters. */
  key?: string | undefined;
  /** Your own id for it; up to 255 characters. */
  correlationId?: string | undefined;
  /** Who started it; up to 255 characters. */
  initiatedBy?: string | undefined;
  /** The parent of its spans; by default the active OpenTelemetry span. */
  traceparent?: string | undefined;
  /**
   * Registers the workflow object in the same transaction, as the current one, if its hash is not registered yet. If it
   * is, nothing changes, so an older service does not revert a newer definition.
   */
  register?: boolean | undefined;
}>;

/**
 * The outcome; the transaction continues in every case. `replayed`: this key started a saga with the same contents
 * before. Nothing was started: `mismatch`, the key belongs to a saga with other contents; `unknown_workflow`, no
 * workflow of this name is registered; `unregistered`, the workflow has no definition with the object's hash (see
 * `register`); `busy`, another open transaction holds the key or registers the workflow, so try again.
 */
// One type for each outcome: TypeScript does not narrow a type whose outcome is itself a union.
export type StartedSaga =
  | Readonly<{ outcome: 'started'; sagaId: string }>
  | Readonly<{ outcome: 'replayed'; sagaId: string }>
  | Readonly<{ outcome: 'mismatch'; sagaId: null; reason: string }>
  | Readonly<{ outcome: 'unknown_workflow'; sagaId: null; reason: string }>
  | Readonly<{ outcome: 'unregistered'; sagaId: null; hash: string; currentHash: string; reason: string }>
  | Readonly<{ outcome: 'busy'; sagaId: null; reason: string }>;

const maxPayloadBytes = 1024 * 1024;

/**
 * Starts a saga in the caller's transaction: it runs once that commits, and never existed if it rolls back. A workflow
 * object starts with its own definition, a name with the current one. Throws before it
 * asks the database if the payload cannot be stored.
 */
export async function startSaga<Input>(
  tx: Transaction,
  workflow: string | SagaWorkflow<Input>,
  payload: Input,
  options: StartOptions = {},
): Promise<StartedSaga> {
  requireClient('saga.start(tx, workflow, payload)', tx);
  const { name, hash } = typeof workflow === 'string' ? { name: workflow, hash: null } : workflow;
  const { key = null, correlationId = null, initiatedBy = null } = options;
  const flaw =
    flawOfText('workflow', name) ??
    (key === null || /^[!-~]{1,255}$/.test(key) ? null : 'key is 1 to 255 visible ASCII characters') ??
    flawOfText('correlationId', correlationId) ??
    flawOfText('initiatedBy', initiatedBy) ??
    (hash === null || /^sha256:[0-9a-f]{64}$/.test(hash)
      ? null
      : 'workflow.hash is not a hash of a workflow');
  if (flaw !== null) throw refused(flaw);
  const text = payloadText(payload);
  if (options.register === true && (await register(tx, workflow)) === 'busy')
    return busy('another open transaction registers the workflow');
  const statement = sql`
    SELECT saga_id::text AS saga_id, outcome, current_hash
    FROM saga.start_saga(
      p_workflow_name => ${name}::text, p_payload => ${text}::jsonb,
      p_correlation_id => ${correlationId}::text, p_initiated_by => ${initiatedBy}::text, p_key => ${key}::text,
      p_trace => ${traceparentOf(options.traceparent)}::text, p_hash => ${hash}::text)`;
  const [row] = await askClient(tx, statement, call);
  return startedOf(row as StartedRow, { name, hash: hash ?? '' });
}

const call = { call: 'saga.start', slice: 'saga' };

async function register<Input>(tx: Transaction, workflow: string | SagaWorkflow<Input>): Promise<unknown> {
  if (typeof workflow === 'string') throw refused('register needs the workflow itself, not its name');
  const definition = definitionOf(workflow);
  const statement = sql`
    SELECT outcome FROM saga.register_workflow(
      p_hash => ${workflow.hash}::text, p_name => ${workflow.name}::text, p_definition => ${definition}::jsonb,
      p_makes_current => false)`;
  const [row] = await askClient(tx, statement, call);
  return (row as Readonly<{ outcome: unknown }>).outcome;
}

/** The stored form. The hash is computed again, because it identifies one behaviour permanently. */
function definitionOf<Input>({ name, hash, text }: SagaWorkflow<Input>): string {
  const parsed = parseWorkflow(parseText(text), null);
  if (!parsed.ok) throw refused('workflow cannot be registered: its text is not a workflow');
  const actual = workflowHash(parsed.workflow);
  if (actual !== hash || parsed.workflow.name !== name)
    throw refused(`workflow cannot be registered: its text has the hash ${actual}, not ${hash}`);
  return JSON.stringify(toStored(parsed.workflow));
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

type StartedRow = Readonly<{
  saga_id: string | null;
  outcome: StartedSaga['outcome'];
  current_hash: string | null;
}>;

function startedOf(
  { saga_id, outcome, current_hash }: StartedRow,
  { name, hash }: Readonly<{ name: string; hash: string }>,
): StartedSaga {
  switch (outcome) {
    case 'started':
    case 'replayed':
      return { outcome, sagaId: saga_id ?? '' };
    case 'mismatch':
      return { outcome, sagaId: null, reason: 'the key belongs to a saga with other contents' };
    case 'unknown_workflow':
      return { outcome, sagaId: null, reason: `no workflow ${name} is registered` };
    case 'unregistered': {
      const currentHash = current_hash ?? '';
      const reason = `the workflow ${name} has no registered definition ${hash}; its current one is ${currentHash}`;
      return { outcome, sagaId: null, hash, currentHash, reason };
    }
    case 'busy':
      return busy('another open transaction holds the key');
  }
}

function busy(cause: string): StartedSaga {
  return { outcome: 'busy', sagaId: null, reason: `${cause}; try again once it has ended` };
}

function payloadText(payload: unknown): string {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload))
    throw refused('payload is an object');
  // The same depth limit as over HTTP.
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
