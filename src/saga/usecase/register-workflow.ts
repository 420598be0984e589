import { AppError } from '../../kernel/errors.ts';
import { parseMethod } from '../domain/method.ts';
import type { ParsedWorkflow } from '../domain/parse-workflow.ts';
import type { Flaw, Step, Workflow } from '../domain/workflow.ts';
import { throwNotFound } from './find-saga.ts';
import type { RegisteredWorkflow, WorkflowStore } from './workflow-ports.ts';

export type RegisterDeps = Readonly<{
  workflows: WorkflowStore;
  /** What a service says can be called; null where it does not say, or is away. Never rejects. */
  methodsOf: (service: string) => Promise<ReadonlySet<string> | null>;
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
  const unknown = await findUnknownMethods(deps, workflow);
  if (unknown.length > 0) throw invalidWorkflow(unknown);
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

/** Each service is asked once, all at the same time; HTTP has no list of what it can do. */
async function findUnknownMethods(
  { methodsOf }: Pick<RegisterDeps, 'methodsOf'>,
  { steps }: Workflow,
): Promise<readonly Flaw[]> {
  const asked = [...new Set(steps.filter(isGrpc).map(({ service }) => service))];
  const known = new Map(
    await Promise.all(asked.map(async (service) => [service, await methodsOf(service)] as const)),
  );
  return steps.flatMap((step) => {
    const methods = known.get(step.service) ?? null;
    return methods === null ? [] : unknownMethodsOf(step, methods);
  });
}

function isGrpc({ method }: Step): boolean {
  const parsed = parseMethod(method);
  return parsed.ok && parsed.method.type === 'grpc';
}

function unknownMethodsOf(step: Step, methods: ReadonlySet<string>): readonly Flaw[] {
  const called = [
    ['method', step.method],
    ...(step.undo.kind === 'call' ? [['compensate', step.undo.method] as const] : []),
  ] as const;
  return called
    .filter(([, method]) => !methods.has(method))
    .map(([field, method]) => ({
      step: step.name,
      field,
      message: `the service ${step.service} has no method ${method}`,
    }));
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
