import assert from 'node:assert/strict';
import { canonicalJson, sha256Of } from '../../../kernel/canonical-json.ts';
import type { Mapping, Step, Undo, Workflow } from './workflow.ts';

/**
 * The stored form of a definition. It is permanent: running sagas keep their definition across upgrades, so every
 * default is spelled out. Fields that were added later are omitted if unused, so that no hash changes; if one is used,
 * the version is 2, and older programs leave such sagas alone.
 */
export type StoredWorkflow = Readonly<{
  version: 1 | 2;
  name: string;
  deadline_ms: number | null;
  steps: readonly StoredStep[];
}>;

type StoredStep = Readonly<{
  name: string;
  service: string;
  method: string;
  /** The method, `none`, or null if absent. */
  compensate: string | null;
  poll?: string;
  pivot: boolean;
  timeout_ms: number;
  retry: Readonly<{
    max_attempts: number;
    backoff: 'exponential' | 'fixed';
    initial_interval_ms: number;
    max_interval_ms?: number;
  }>;
  undo_for_ms?: number;
  wait_for_service_ms?: number;
  input: Mapping | null;
  compensate_input: Mapping | null;
}>;

/** `sha256:…` of the stored form in RFC 8785 canonical JSON, so that equal definitions have equal hashes. */
export function workflowHash(workflow: Workflow): string {
  return sha256Of(canonicalJson(toStored(workflow)));
}

export function toStored({ name, deadlineMs, steps }: Workflow): StoredWorkflow {
  const version = steps.some(hasLaterFields) ? 2 : 1;
  return { version, name, deadline_ms: deadlineMs, steps: steps.map(toStoredStep) };
}

function hasLaterFields({ poll, undoForMs, waitForServiceMs, retry }: Step): boolean {
  return [poll, undoForMs, waitForServiceMs, retry.maxIntervalMs].some((value) => value !== undefined);
}

/** The inverse of `toStored`; the definition was checked before it was stored. */
export function fromStored(stored: unknown): Workflow {
  const { version, name, deadline_ms, steps } = stored as StoredWorkflow;
  assert(version === 1 || version === 2, `a stored workflow has version 1 or 2, not ${String(version)}`);
  return { name, deadlineMs: deadline_ms, steps: steps.map(fromStoredStep) };
}

/** Omits the key if the value is undefined. */
function given<Key extends string, Value>(key: Key, value: Value | undefined): { [K in Key]?: Value } {
  return (value === undefined ? {} : { [key]: value }) as { [K in Key]?: Value };
}

function toStoredStep(step: Step): StoredStep {
  return {
    name: step.name,
    service: step.service,
    method: step.method,
    compensate: compensateOf(step.undo),
    ...given('poll', step.poll),
    pivot: step.isPivot,
    timeout_ms: step.timeoutMs,
    retry: {
      max_attempts: step.retry.maxAttempts,
      backoff: step.retry.backoff,
      initial_interval_ms: step.retry.initialIntervalMs,
      ...given('max_interval_ms', step.retry.maxIntervalMs),
    },
    ...given('undo_for_ms', step.undoForMs),
    ...given('wait_for_service_ms', step.waitForServiceMs),
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
    ...given('poll', step.poll),
    isPivot: step.pivot,
    timeoutMs: step.timeout_ms,
    retry: {
      maxAttempts: step.retry.max_attempts,
      backoff: step.retry.backoff,
      initialIntervalMs: step.retry.initial_interval_ms,
      ...given('maxIntervalMs', step.retry.max_interval_ms),
    },
    ...given('undoForMs', step.undo_for_ms),
    ...given('waitForServiceMs', step.wait_for_service_ms),
    input: step.input,
    undoInput: step.compensate_input,
  };
}

/** As it is stored and shown: the method, `none`, or null if the step has no undo. */
export function compensateOf(undo: Undo): string | null {
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
