import { checkMethods, type AskMethods } from '../domain/workflow/check-methods.ts';
import type { RegisteredWorkflow } from './workflows-table.ts';

/**
 * Checks in the background that services have the methods that the current workflows call. A service may be down, or
 * get the method with its next deployment, so problems are only warnings and are checked again and again.
 */
export type MethodCheck = Readonly<{
  /** The problems found by the last check. Starts a new check in the background if that was a while ago. */
  problems(): readonly string[];
  /** Never rejects. */
  run(): Promise<void>;
}>;

export type MethodCheckDeps = Readonly<{
  listWorkflows: () => Promise<readonly RegisteredWorkflow[]>;
  askMethods: AskMethods;
  /** Called if the problems have changed. */
  onProblems: (problems: readonly string[]) => void;
  onError: (error: unknown) => void;
  everyMs?: number;
}>;

export function createMethodCheck(deps: MethodCheckDeps): MethodCheck {
  const { everyMs = 10_000 } = deps;
  let problems: readonly string[] = [];
  let running: Promise<void> | null = null;
  let checkedAtMs = Number.NEGATIVE_INFINITY;

  const runOnce = async (): Promise<void> => {
    try {
      const found = await findProblems(deps);
      const isNew = found.join('\n') !== problems.join('\n');
      problems = found;
      if (isNew && found.length > 0) deps.onProblems(found);
    } catch (error) {
      deps.onError(error);
    } finally {
      checkedAtMs = performance.now();
      running = null;
    }
  };
  const run = (): Promise<void> => (running ??= runOnce());

  return {
    run,
    problems() {
      if (performance.now() - checkedAtMs >= everyMs) void run();
      return problems;
    },
  };
}

/** Asks each service once, however many workflows call it. */
async function findProblems({ listWorkflows, askMethods }: MethodCheckDeps): Promise<readonly string[]> {
  const asked = new Map<string, ReturnType<AskMethods>>();
  const askOnce: AskMethods = (service) => {
    const answer = asked.get(service) ?? askMethods(service);
    asked.set(service, answer);
    return answer;
  };
  const found = new Set<string>();
  for (const { workflow } of await listWorkflows()) {
    const { flaws, unchecked } = await checkMethods(askOnce, workflow);
    for (const { step, message } of flaws) found.add(`${workflow.name}: step ${step}: ${message}`);
    for (const { service, reason } of unchecked)
      found.add(`the methods of the service ${service} are unknown: ${reason}`);
  }
  return [...found];
}
