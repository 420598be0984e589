import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { checkMethods, type AskMethods } from '../domain/workflow/check-methods.ts';
import type { KnownServices, ParsedWorkflow } from '../domain/workflow/parse-workflow.ts';
import { didYouMean } from '../domain/workflow/read-fields.ts';
import type { Flaw, Workflow } from '../domain/workflow/workflow.ts';
import { storeWorkflow, type RegisteredWorkflow } from './workflows-table.ts';

export type RegisterDeps = Readonly<{
  db: Database;
  log: Logger;
  /** The services that are configured in this process. */
  services: KnownServices;
  askMethods: AskMethods;
}>;

/** With warnings about calls that may fail when sagas run. */
export type RegisteredWithWarnings = RegisteredWorkflow & Readonly<{ warnings: readonly string[] }>;

/**
 * Registers a workflow and makes it current. Services may be configured later, or only in other processes, so an
 * unconfigured one is only a warning.
 */
export async function registerWorkflow(
  { db, log, services, askMethods }: RegisterDeps,
  parsed: ParsedWorkflow,
  { actor, act }: Readonly<{ actor: string; act: Act }>,
): Promise<RegisteredWithWarnings> {
  if (!parsed.ok) throw invalidWorkflow(parsed.flaws);
  const { workflow } = parsed;
  const { flaws, unchecked } = await checkMethods(askMethods, workflow);
  if (flaws.length > 0) throw invalidWorkflow(flaws);
  const hash = await db.transaction(async (tx) => {
    const stored = await storeWorkflow(tx, workflow, { isFromFile: false });
    const { name } = workflow;
    await recordAct(tx, act, {
      resource: `saga/workflows/${name}`,
      names: { workflows: [name] },
      detail: { event: 'register', hash: stored },
    });
    return stored;
  });
  log.info({ name: workflow.name, hash, actor }, 'registered workflow');
  const warnings = [
    ...unserved(workflow, services),
    ...unchecked.map(
      ({ service, reason }) => `the methods of the service ${service} could not be checked: ${reason}`,
    ),
  ];
  return { hash, workflow, warnings };
}

function unserved({ steps }: Workflow, services: KnownServices): readonly string[] {
  const unknown = new Set(steps.map(({ service }) => service).filter((service) => !services.has(service)));
  return [...unknown].map(
    (service) => `the service ${service} is not configured here${didYouMean(service, services.keys())}`,
  );
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

/** `steps.reserve.method`; `workflow_yaml` for a flaw of the whole. */
function placeOf({ step, field }: Flaw): string {
  const inStep = step === null ? [] : ['steps', step];
  return [...inStep, field].filter((part) => part !== '').join('.') || 'workflow_yaml';
}
