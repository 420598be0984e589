import { findUnsafeInput } from '../../../kernel/unsafe-input.ts';
import { DEFAULT_UNDO_FOR_MS, DEFAULT_WAIT_FOR_SERVICE_MS } from '../budget.ts';
import { checkSteps } from './check-steps.ts';
import { isReference, normalizeMapping } from './mapping.ts';
import { callVerbs, parseMethod, pollVerbs, printMethod, type HttpVerb, type ServiceType } from './method.ts';
import {
  didYouMean,
  fieldAt,
  isMap,
  kindOf,
  readDuration,
  readFields,
  readFlag,
  readName,
  readNumber,
  readStepName,
  readWord,
  shorten,
  type Fields,
  type Report,
} from './read-fields.ts';
import type { Flaw, Mapping, RetryPolicy, Step, Undo, Workflow } from './workflow.ts';

/** The configured services by name. */
export type KnownServices = ReadonlyMap<string, KnownService>;

export type KnownService = Readonly<{
  type: ServiceType;
  /** False: a call with an unknown effect must not be repeated. */
  isIdempotent: boolean;
}>;

/** Whether an unconfigured service is a flaw. */
export type UnknownServices = 'refused' | 'accepted';

export type ParsedWorkflow =
  | Readonly<{ ok: true; workflow: Workflow }>
  | Readonly<{ ok: false; flaws: readonly Flaw[] }>;

const MAX_STEPS = 200;
/** The same mistake is often repeated in every step. */
const MAX_FLAWS = 100;

/**
 * Parses a definition from YAML or JSON data, filling in every default and spelling references canonically. Reports all
 * flaws at once. Without `services`, any service is accepted and the form of a method determines the service's type.
 */
export function parseWorkflow(
  data: unknown,
  services: KnownServices | null,
  unknownServices: UnknownServices = services === null ? 'accepted' : 'refused',
): ParsedWorkflow {
  const flaws: Flaw[] = [];
  const reportAbout =
    (step: string | null): Report =>
    (field, message) =>
      void flaws.push({ step, field, message });
  const report = reportAbout(null);
  const unsafe = findUnsafeInput(data, 'workflow');
  if (unsafe !== null)
    return { ok: false, flaws: [{ step: null, field: unsafe.field, message: unsafe.message }] };

  const fields = readFields(data, WORKFLOW_KEYS, report);
  const name = readName(fields['name'], 'name', report);
  const deadlineMs = readDuration(fields['deadline'], 'deadline', report);
  const forAll = readPatience(fields, report);
  const steps = readList(fields['steps'], report).map((each, index) => {
    const rule = { services, unknownServices };
    const { patience, ...step } = readStep(each, rule, reportAbout(labelOf(each, index)));
    return { ...step, ...withoutDefaults({ ...forAll, ...patience }) };
  });
  flaws.push(...checkSteps(steps));
  if (flaws.length > 0) return { ok: false, flaws: flaws.slice(0, MAX_FLAWS) };
  return { ok: true, workflow: { name, deadlineMs, steps } };
}

function readList(value: unknown, report: Report): readonly unknown[] {
  if (value === undefined || (Array.isArray(value) && value.length === 0))
    report('steps', 'must have at least one step');
  else if (!Array.isArray(value)) report('steps', `must be a list of steps, not ${kindOf(value)}`);
  else if (value.length > MAX_STEPS) report('steps', `must not have more than ${MAX_STEPS} steps`);
  else return value;
  return [];
}

function labelOf(step: unknown, index: number): string {
  const name = isMap(step) ? step['name'] : undefined;
  return typeof name === 'string' && name !== '' ? shorten(name) : `#${index + 1}`;
}

const PATIENCE_KEYS = ['undo_for', 'wait_for_service'] as const;
const WORKFLOW_KEYS = ['name', 'deadline', ...PATIENCE_KEYS, 'steps'] as const;

type Patience = Pick<Step, 'undoForMs' | 'waitForServiceMs'>;

/** Defaults of the workflow apply to steps that do not override them. */
function readPatience(fields: Fields, report: Report): Patience {
  const undoForMs = readDuration(fields['undo_for'], 'undo_for', report);
  const waitForServiceMs = readDuration(fields['wait_for_service'], 'wait_for_service', report);
  return {
    ...(undoForMs === null ? {} : { undoForMs }),
    ...(waitForServiceMs === null ? {} : { waitForServiceMs }),
  };
}

/** Spelling out a default must not change the hash. */
function withoutDefaults({ undoForMs, waitForServiceMs }: Patience): Patience {
  return {
    ...(undoForMs === undefined || undoForMs === DEFAULT_UNDO_FOR_MS ? {} : { undoForMs }),
    ...(waitForServiceMs === undefined || waitForServiceMs === DEFAULT_WAIT_FOR_SERVICE_MS
      ? {}
      : { waitForServiceMs }),
  };
}

const STEP_KEYS = [
  'name',
  'service',
  'method',
  'compensate',
  'poll',
  'timeout_secs',
  'retry',
  ...PATIENCE_KEYS,
  'input',
  'compensate_input',
  'pivot',
] as const;

const DEFAULT_TIMEOUT_SECS = 30;

type ServiceRule = Readonly<{ services: KnownServices | null; unknownServices: UnknownServices }>;

/** Reports and replaces invalid values, so that the rules between steps can still be checked. */
function readStep(
  value: unknown,
  { services, unknownServices }: ServiceRule,
  report: Report,
): Step & Readonly<{ patience: Patience }> {
  const fields = readFields(value, STEP_KEYS, report);
  const service = readName(fields['service'], 'service', report);
  const known = services?.get(service);
  if (service !== '' && unknownServices === 'refused' && known === undefined)
    report(
      'service',
      `there is no service ${shorten(service)}${didYouMean(service, services?.keys() ?? [])}`,
    );
  const method = readMethod(fields['method'], 'method', { type: known?.type, report });
  const type = known?.type ?? method.type;
  const undo = readUndo(fields['compensate'], type, report);
  if (fields['compensate_input'] !== undefined && undo.kind !== 'call')
    report('compensate_input', 'is unused: the step has no compensate');
  const timeoutSecs = readNumber(
    fields['timeout_secs'],
    'timeout_secs',
    { min: 0.001, max: 3600, fallback: DEFAULT_TIMEOUT_SECS, stepsPerUnit: 1000 },
    report,
  );
  return {
    name: readStepName(fields['name'], report),
    service,
    method: method.text,
    undo,
    ...readPoll(fields['poll'], type, report),
    isPivot: readFlag(fields['pivot'], 'pivot', report),
    timeoutMs: Math.round(timeoutSecs * 1000),
    retry: readRetry(fields['retry'], report),
    input: readMapping(fields['input'], 'input', type, report),
    undoInput: readMapping(fields['compensate_input'], 'compensate_input', type, report),
    patience: readPatience(fields, report),
  };
}

type ReadMethod = Readonly<{ text: string; type?: ServiceType }>;

type MethodPlace = Readonly<{
  type: ServiceType | undefined;
  verbs?: readonly HttpVerb[];
  report: Report;
}>;

function readMethod(
  value: unknown,
  field: string,
  { type, verbs = callVerbs, report }: MethodPlace,
): ReadMethod {
  if (value === undefined || value === '') report(field, 'must not be empty');
  else if (typeof value !== 'string') report(field, `must be a string, not ${kindOf(value)}`);
  else {
    const parsed = parseMethod(value, type, verbs);
    if (parsed.ok) return { text: printMethod(parsed.method), type: parsed.method.type };
    report(field, parsed.message);
  }
  return { text: '' };
}

function readUndo(value: unknown, type: ServiceType | undefined, report: Report): Undo {
  if (value === undefined) return { kind: 'absent' };
  if (value === 'none') return { kind: 'none' };
  return { kind: 'call', method: readMethod(value, 'compensate', { type, report }).text };
}

function readPoll(value: unknown, type: ServiceType | undefined, report: Report): Pick<Step, 'poll'> {
  if (value === undefined) return {};
  if (type === 'grpc') {
    report('poll', 'is for HTTP services: a gRPC method is polled with the same request');
    return {};
  }
  return { poll: readMethod(value, 'poll', { type: 'http', verbs: pollVerbs, report }).text };
}

function readRetry(value: unknown, report: Report): RetryPolicy {
  const at = (key: string): string => `retry.${key}`;
  const keys = ['max_attempts', 'backoff', 'initial_interval_ms', 'max_interval_ms'];
  const fields = value === undefined ? {} : readFields(value, keys, report, 'retry');
  return {
    maxAttempts: readNumber(
      fields['max_attempts'],
      at('max_attempts'),
      { min: 1, max: 100, fallback: 3 },
      report,
    ),
    backoff: readWord(fields['backoff'], at('backoff'), ['exponential', 'fixed'], report),
    initialIntervalMs: readNumber(
      fields['initial_interval_ms'],
      at('initial_interval_ms'),
      { min: 1, max: 3_600_000, fallback: 1000 },
      report,
    ),
    ...readMaxInterval(fields['max_interval_ms'], report),
  };
}

function readMaxInterval(value: unknown, report: Report): Pick<RetryPolicy, 'maxIntervalMs'> {
  if (value === undefined) return {};
  const range = { min: 1, max: 86_400_000, fallback: 1 };
  return { maxIntervalMs: readNumber(value, 'retry.max_interval_ms', range, report) };
}

function readMapping(
  value: unknown,
  field: string,
  type: ServiceType | undefined,
  report: Report,
): Mapping | null {
  if (value === undefined) return null;
  const { mapping, flaws } = normalizeMapping(toMapping(value, field, report));
  for (const { at, message } of flaws) report(at === '' ? field : `${field}.${at}`, message);
  if (flaws.length > 0) return null;
  if (type === 'grpc' && !isMap(mapping) && !isReference(mapping))
    report(field, 'must be a map of the fields of a message, or a reference to one');
  return mapping;
}

/** JSON only, and no number that loses precision. */
function toMapping(value: unknown, at: string, report: Report): Mapping {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  if (typeof value === 'number') {
    if (Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value)) return value + 0;
    report(at, 'must be a number that a double represents exactly, or a string');
    return null;
  }
  if (Array.isArray(value))
    return value.map((each: unknown, index) => toMapping(each, fieldAt(at, String(index)), report));
  if (isMap(value))
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, toMapping(each, fieldAt(at, shorten(key)), report)]),
    );
  report(at, `must be JSON, not ${kindOf(value)}`);
  return null;
}
