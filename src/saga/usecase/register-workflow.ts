import { AppError } from '../../kernel/errors.ts';
import { parseMethod } from '../domain/method.ts';
import type { ParsedWorkflow } from '../domain/parse-workflow.ts';
import { didYouMean } from '../domain/read-fields.ts';
import type { Flaw, Step, Workflow } from '../domain/workflow.ts';
import { throwNotFound } from './find-saga.ts';
import type { RegisteredWorkflow, WorkflowStore } from './workflow-ports.ts';

/** By their names; a step calls what is asked once and answered once. */
export type MethodKinds = ReadonlyMap<string, 'unary' | 'stream'>;

/** What can be called there: `any` where a service has no list of it, or why nobody can tell now. */
export type CallableMethods = 'any' | MethodKinds | Readonly<{ unknown: string }>;

/** Never rejects. */
export type AskMethods = (service: string) => Promise<CallableMethods>;

export type RegisterDeps = Readonly<{
  workflows: WorkflowStore;
  askMethods: AskMethods;
  onRegistered: (registered: Readonly<{ name: string; hash: string; actor: string }>) => void;
}>;

/** What a person sends becomes current, whatever was before. */
export async function registerWorkflow(
  deps: RegisterDeps,
  parsed: ParsedWorkflow,
  actor: string,
): Promise<RegisteredWorkflow> {
  if (!parsed.ok) throw invalidWorkflow(parsed.flaws);
  const { workflow } = parsed;
  const { flaws } = await checkMethods(deps.askMethods, workflow);
  if (flaws.length > 0) throw invalidWorkflow(flaws);
  const hash = await deps.workflows.register(workflow, { isFromFile: false });
  deps.onRegistered({ name: workflow.name, hash, actor });
  return { hash, workflow };
}

export async function getWorkflow(
  workflows: Pick<WorkflowStore, 'find'>,
  name: string,
): Promise<RegisteredWorkflow> {
  return (await workflows.find(name)) ?? throwNotFound(`workflow not found: workflow_name=${name}`);
}

export type CheckedMethods = Readonly<{
  flaws: readonly Flaw[];
  /** Those that could not be asked, and why. */
  unchecked: readonly Readonly<{ service: string; reason: string }>[];
}>;

/** Whether there is what the steps call. Each service is asked once, all at the same time. */
export async function checkMethods(askMethods: AskMethods, { steps }: Workflow): Promise<CheckedMethods> {
  // HTTP has no list of what it can do.
  const asked = [...new Set(steps.filter(isGrpc).map(({ service }) => service))];
  const known = new Map(
    await Promise.all(asked.map(async (service) => [service, await askMethods(service)] as const)),
  );
  const flaws = steps.flatMap((step) => {
    const methods = known.get(step.service);
    return methods instanceof Map ? flawsOfMethods(step, methods) : [];
  });
  const unchecked = [...known].flatMap(([service, methods]) =>
    typeof methods === 'object' && 'unknown' in methods ? [{ service, reason: methods.unknown }] : [],
  );
  return { flaws, unchecked };
}

function isGrpc({ method }: Step): boolean {
  const parsed = parseMethod(method);
  return parsed.ok && parsed.method.type === 'grpc';
}

function flawsOfMethods(step: Step, methods: MethodKinds): readonly Flaw[] {
  const called = [
    ['method', step.method],
    ...(step.undo.kind === 'call' ? [['compensate', step.undo.method] as const] : []),
  ] as const;
  return called.flatMap(([field, method]) => {
    const kind = methods.get(method);
    if (kind === 'unary') return [];
    const message =
      kind === 'stream'
        ? `the method ${method} of the service ${step.service} is a stream, and a step has one answer`
        : `the service ${step.service} has no method ${method}${didYouMean(method, methods.keys())}`;
    return [{ step: step.name, field, message }];
  });
}

const flawsInMessage = 3;

function invalidWorkflow(flaws: readonly Flaw[]): AppError {
  const said = flaws.slice(0, flawsInMessage).map((flaw) => `${placeOf(flaw)} ${flaw.message}`);
  const unsaid = flaws.length - said.length;
  const more = unsaid > 0 ? `; and ${unsaid} more` : '';
  return new AppError(
    'SYS_SAGA_VALIDATION_ERROR',
    'validation',
    `invalid workflow: ${said.join('; ')}${more}`,
    {
      details: flaws.map((flaw) => ({ field: placeOf(flaw), reason: 'workflow', message: flaw.message })),
    },
  );
}

/** `steps.reserve.method`; a flaw of the whole has no place of its own. */
function placeOf({ step, field }: Flaw): string {
  const inStep = step === null ? [] : ['steps', step];
  return [...inStep, field].filter((part) => part !== '').join('.') || 'workflow_yaml';
}
