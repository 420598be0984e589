import assert from 'node:assert/strict';
import { canonicalJson, sha256Of } from '../../kernel/canonical-json.ts';
import type { Mapping, Step, Undo, Workflow } from './workflow.ts';

/**
 * A definition as it is stored, for good: sagas that run keep theirs over every later version of this program. So
 * every default is written out, and what is added one day gets the next version and its own reader.
 */
export type StoredWorkflow = Readonly<{
  version: 1;
  name: string;
  deadline_ms: number | null;
  steps: readonly StoredStep[];
}>;

type StoredStep = Readonly<{
  name: string;
  service: string;
  method: string;
  /** The method; `none`, which is no method; or null where there is none. */
  compensate: string | null;
  pivot: boolean;
  timeout_ms: number;
  retry: Readonly<{
    max_attempts: number;
    backoff: 'exponential' | 'fixed';
    initial_interval_ms: number;
  }>;
  input: Mapping | null;
  compensate_input: Mapping | null;
}>;

const VERSION = 1;

/** `sha256:…` of the stored form as RFC 8785 writes it: one name for one behaviour, however it was written down. */
export function workflowHash(workflow: Workflow): string {
  return sha256Of(canonicalJson(toStored(workflow)));
}

export function toStored({ name, deadlineMs, steps }: Workflow): StoredWorkflow {
  return { version: VERSION, name, deadline_ms: deadlineMs, steps: steps.map(toStoredStep) };
}

/** Of what `toStored` made; it was checked before it was stored. */
export function fromStored(stored: unknown): Workflow {
  const { version, name, deadline_ms, steps } = stored as StoredWorkflow;
  assert(version === VERSION, `a stored workflow has version ${VERSION}, not ${String(version)}`);
  return { name, deadlineMs: deadline_ms, steps: steps.map(fromStoredStep) };
}

function toStoredStep(step: Step): StoredStep {
  return {
    name: step.name,
    service: step.service,
    method: step.method,
    compensate: compensateOf(step.undo),
    pivot: step.isPivot,
    timeout_ms: step.timeoutMs,
    retry: {
      max_attempts: step.retry.maxAttempts,
      backoff: step.retry.backoff,
      initial_interval_ms: step.retry.initialIntervalMs,
    },
    input: step.input,
    compensate_input: step.undoInput,
  };
}

function fromStoredStep(step: StoredStep): Step {
  return {
    name: step.name,
    service: step.service,
    method: step.method,
    undo: undoOf(step.compensate),
    isPivot: step.pivot,
    timeoutMs: step.timeout_ms,
    retry: {
      maxAttempts: step.retry.max_attempts,
      backoff: step.retry.backoff,
      initialIntervalMs: step.retry.initial_interval_ms,
    },
    input: step.input,
    undoInput: step.compensate_input,
  };
}

function compensateOf(undo: Undo): string | null {
  switch (undo.kind) {
    case 'call':
      return undo.method;
    case 'none':
      return 'none';
    case 'absent':
      return null;
  }
}

function undoOf(compensate: string | null): Undo {
  if (compensate === null) return { kind: 'absent' };
  return compensate === 'none' ? { kind: 'none' } : { kind: 'call', method: compensate };
}
