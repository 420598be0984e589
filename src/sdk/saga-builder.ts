import { parseWorkflow } from '../saga/domain/workflow/parse-workflow.ts';
import { workflowHash } from '../saga/domain/workflow/workflow-hash.ts';
import { createRef, type Place, type Ref, type Scope } from './saga-reference.ts';
import type { Call } from './saga-service.ts';

declare const startedWith: unique symbol;
declare const unnamed: unique symbol;

/** A workflow as the server accepts it; the same steps in YAML have the same hash. */
export type SagaWorkflow<Input> = Readonly<{
  name: string;
  hash: string;
  /** For `POST /api/v1/workflows`, as `workflow_yaml`. */
  text: string;
  [startedWith]?: (input: Input) => void;
}>;

export type SagaOptions = Readonly<{
  /** From the start, such as `30m`; if it passes before the pivot, the saga is undone. */
  deadline?: string;
  /** How long each undo is retried before the saga needs attention, such as `24h`; a step may override it. */
  undoFor?: string;
  /** How long each step waits for a service that is down before the saga is undone; `1h` by default. */
  waitForService?: string;
}>;

type CallOptions = Readonly<{
  /** Of one call; 30 by default. */
  timeoutSecs?: number;
  retry?: Readonly<{
    maxAttempts?: number;
    backoff?: 'exponential' | 'fixed';
    initialIntervalMs?: number;
    maxIntervalMs?: number;
  }>;
  undoFor?: string;
  waitForService?: string;
}>;

type Answers = Readonly<Record<string, unknown>>;

type Known<Input, Steps extends Answers, P extends Place> = Readonly<{
  /** The saga's payload. */
  input: Ref<Input, P>;
  /** The responses of earlier steps. */
  steps: { readonly [Name in keyof Steps]: Ref<Steps[Name], P> };
}>;

type ForwardStep<Input, Steps extends Answers, Answer> = CallOptions &
  Readonly<{
    do: (known: Known<Input, Steps, 'action'>) => Call<Answer, Input>;
    /** How to poll after a 202: `GET /orders/${own.id}`, where `own` is the body of the 202. */
    poll?: string;
  }>;

type Step<Input, Steps extends Answers, Answer> = ForwardStep<Input, Steps, Answer> &
  Readonly<{
    /**
     * How it is undone. `own` is the response of the step, which may be missing if it was lost. `none`: there is nothing
     * to undo. Without it, the saga needs attention if it is in doubt whether the step was done.
     */
    undo?:
      | 'none'
      | ((
          known: Known<Input, Steps, 'undo'> & Readonly<{ own: Ref<Answer | undefined, 'undo'> }>,
        ) => Call<unknown, Input>);
  }>;

/** Before the first step there are no responses. */
type NoSteps = Readonly<{ [unnamed]?: never }>;

type Grown<Steps extends Answers, Name extends string, Answer> = Steps & Readonly<Record<Name, Answer>>;

/** From the pivot on, steps cannot be undone. */
export type SagaAfterPivot<Input, Steps extends Answers> = Readonly<{
  step<const Name extends string, Answer>(
    name: Name,
    step: ForwardStep<Input, Steps, Answer>,
  ): SagaAfterPivot<Input, Grown<Steps, Name, Answer>>;
  build(): SagaWorkflow<Input>;
}>;

export type SagaBuilder<Input, Steps extends Answers> = Readonly<{
  step<const Name extends string, Answer>(
    name: Name,
    step: Step<Input, Steps, Answer>,
  ): SagaBuilder<Input, Grown<Steps, Name, Answer>>;
  /** The point of no return. */
  pivot<const Name extends string, Answer>(
    name: Name,
    step: ForwardStep<Input, Steps, Answer>,
  ): SagaAfterPivot<Input, Grown<Steps, Name, Answer>>;
  build(): SagaWorkflow<Input>;
}>;

/**
 * Defines a workflow in TypeScript. Callbacks run once, at definition, with references instead of values, so they return
 * the same data as YAML.
 */
export function saga<Input>(
  name: string,
  { deadline, undoFor, waitForService }: SagaOptions = {},
): SagaBuilder<Input, NoSteps> {
  const head = { name, deadline, undo_for: undoFor, wait_for_service: waitForService };
  return builderOf<Input>(head, []) as SagaBuilder<Input, NoSteps>;
}

type Head = Readonly<{
  name: string;
  deadline: string | undefined;
  undo_for: string | undefined;
  wait_for_service: string | undefined;
}>;
type AnyStep = CallOptions &
  Readonly<{
    do: (known: object) => Call<unknown>;
    poll?: string;
    undo?: 'none' | ((known: object) => Call<unknown>);
  }>;
type StepFile = Readonly<{ name: string; service: string }> & Readonly<Record<string, unknown>>;

/** The types alone track the steps. */
type AnyBuilder<Input> = Readonly<{
  step(name: string, step: AnyStep): AnyBuilder<Input>;
  pivot(name: string, step: AnyStep): AnyBuilder<Input>;
  build(): SagaWorkflow<Input>;
}>;

function builderOf<Input>(head: Head, steps: readonly StepFile[]): AnyBuilder<Input> {
  const names = steps.map(({ name }) => name);
  const grown = (name: string, step: AnyStep, isPivot: boolean): AnyBuilder<Input> =>
    builderOf<Input>(head, [...steps, { ...recordStep(name, step, names), pivot: isPivot }]);
  return {
    step: (name, step) => grown(name, step, false),
    pivot: (name, step) => grown(name, step, true),
    build: () => build<Input>(head, steps),
  };
}

function build<Input>(head: Head, steps: readonly StepFile[]): SagaWorkflow<Input> {
  const text = JSON.stringify({ ...head, steps });
  const parsed = parseWorkflow(JSON.parse(text), null);
  if (!parsed.ok) {
    const flaws = parsed.flaws.map(({ step, field, message }) =>
      [step === null ? '' : `step ${step}: `, field, ' ', message].join(''),
    );
    throw new TypeError(`workflow ${head.name} is not valid: ${flaws.join('; ')}`);
  }
  return { name: head.name, hash: workflowHash(parsed.workflow), text };
}

function recordStep(name: string, step: AnyStep, earlier: readonly string[]): StepFile {
  const action = record(`step ${name}: do`, step.do, earlier, false);
  const { retry, timeoutSecs, poll, undoFor, waitForService } = step;
  const file = {
    name,
    service: action.service,
    method: action.method,
    input: action.input,
    poll,
    timeout_secs: timeoutSecs,
    retry: retry && {
      max_attempts: retry.maxAttempts,
      backoff: retry.backoff,
      initial_interval_ms: retry.initialIntervalMs,
      max_interval_ms: retry.maxIntervalMs,
    },
    undo_for: undoFor,
    wait_for_service: waitForService,
  };
  if (step.undo === undefined || step.undo === 'none') return { ...file, compensate: step.undo };
  const undo = record(`step ${name}: undo`, step.undo, earlier, true);
  if (undo.service !== action.service)
    throw new TypeError(
      `step ${name}: undo calls ${undo.service}, but a step has one service: ${action.service}`,
    );
  return { ...file, compensate: undo.method, compensate_input: undo.input };
}

function record(
  what: string,
  callback: (known: object) => Call<unknown>,
  earlier: readonly string[],
  isUndo: boolean,
): Readonly<{ service: string; method: string; input: unknown }> {
  const scope: Scope = {};
  const steps = earlier.map((step) => [step, createRef({ root: 'steps', step, path: [] }, scope)] as const);
  const known = {
    input: createRef({ root: 'input', path: [] }, scope),
    steps: Object.fromEntries(steps),
    ...(isUndo ? { own: createRef({ root: 'own', path: [] }, scope) } : {}),
  };
  const made: Partial<Call<unknown>> | undefined = callback(known);
  if (typeof made?.record !== 'function' || made.service === undefined)
    throw new TypeError(
      `${what} must return a call of a service, at once: it only says what is to be called`,
    );
  return { service: made.service, ...explained(what, () => made.record?.(scope)) } as ReturnType<
    typeof record
  >;
}

/** Adds the step to errors of its callbacks. */
function explained<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TypeError) throw new TypeError(`${what}: ${error.message}`, { cause: error });
    throw error;
  }
}
