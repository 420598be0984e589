import { parseWorkflow } from '../saga/domain/parse-workflow.ts';
import { workflowHash } from '../saga/domain/workflow-hash.ts';
import { createRef, type Place, type Ref, type Scope } from './saga-reference.ts';
import type { Call } from './saga-service.ts';

declare const startedWith: unique symbol;
declare const unnamed: unique symbol;

/** A workflow as the server takes it; the same steps written as YAML have the same hash. */
export type SagaWorkflow<Input> = Readonly<{
  name: string;
  hash: string;
  /** For `POST /api/v1/workflows`, as `workflow_yaml`. */
  text: string;
  [startedWith]?: (input: Input) => void;
}>;

export type SagaOptions = Readonly<{
  /** From the start, such as `30m`; when it is over before the pivot, everything is undone. */
  deadline?: string;
}>;

type CallOptions = Readonly<{
  /** Of one call; 30 by default. */
  timeoutSecs?: number;
  retry?: Readonly<{
    maxAttempts?: number;
    backoff?: 'exponential' | 'fixed';
    initialIntervalMs?: number;
  }>;
}>;

type Answers = Readonly<Record<string, unknown>>;

type Known<Input, Steps extends Answers, P extends Place> = Readonly<{
  /** The saga's payload. */
  input: Ref<Input, P>;
  /** What earlier steps were answered. */
  steps: { readonly [Name in keyof Steps]: Ref<Steps[Name], P> };
}>;

type ForwardStep<Input, Steps extends Answers, Answer> = CallOptions &
  Readonly<{ do: (known: Known<Input, Steps, 'action'>) => Call<Answer, Input> }>;

type Step<Input, Steps extends Answers, Answer> = ForwardStep<Input, Steps, Answer> &
  Readonly<{
    /**
     * How it is undone. `own` is what the step was answered, and may be missing: nobody may have heard the answer.
     * `none`: there is nothing to undo. Left out, a person is asked where it is in doubt whether the step was done.
     */
    undo?:
      | 'none'
      | ((
          known: Known<Input, Steps, 'undo'> & Readonly<{ own: Ref<Answer | undefined, 'undo'> }>,
        ) => Call<unknown, Input>);
  }>;

/** Before the first step there is no answer of any name. */
type NoSteps = Readonly<{ [unnamed]?: never }>;

type Grown<Steps extends Answers, Name extends string, Answer> = Steps & Readonly<Record<Name, Answer>>;

/** From the pivot on it only goes forward. */
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
 * A workflow in TypeScript. Callbacks run once, here, with references in place of values, so that what they return
 * is the same data that YAML has.
 */
export function saga<Input>(name: string, { deadline }: SagaOptions = {}): SagaBuilder<Input, NoSteps> {
  return builderOf<Input>({ name, deadline }, []) as SagaBuilder<Input, NoSteps>;
}

type Head = Readonly<{ name: string; deadline: string | undefined }>;
type AnyStep = CallOptions &
  Readonly<{
    do: (known: object) => Call<unknown>;
    undo?: 'none' | ((known: object) => Call<unknown>);
  }>;
type StepFile = Readonly<{ name: string; service: string }> & Readonly<Record<string, unknown>>;

/** What it grows to is in the types alone. */
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
  const { retry, timeoutSecs } = step;
  const file = {
    name,
    service: action.service,
    method: action.method,
    input: action.input,
    timeout_secs: timeoutSecs,
    retry: retry && {
      max_attempts: retry.maxAttempts,
      backoff: retry.backoff,
      initial_interval_ms: retry.initialIntervalMs,
    },
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

/** Errors of the recording say of which step they are. */
function explained<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TypeError) throw new TypeError(`${what}: ${error.message}`, { cause: error });
    throw error;
  }
}
