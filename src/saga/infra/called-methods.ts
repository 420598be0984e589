import { checkMethods, type AskMethods } from '../usecase/register-workflow.ts';
import type { WorkflowStore } from '../usecase/workflow-ports.ts';

/**
 * Whether the services have what the current workflows call. A service that describes itself may be away, or may get
 * the method with its next deployment: so this is looked at again and again, beside everything else, and is never more
 * than a warning.
 */
export type CalledMethods = Readonly<{
  /** What was wrong when it was last looked at. Looks again, without anybody waiting, where that is a while ago. */
  troubles(): readonly string[];
  /** Never rejects. */
  look(): Promise<void>;
}>;

export type CalledMethodsDeps = Readonly<{
  workflows: Pick<WorkflowStore, 'list'>;
  askMethods: AskMethods;
  onTroubles: (troubles: readonly string[]) => void;
  onError: (error: unknown) => void;
  everyMs?: number;
}>;

export function createCalledMethods(deps: CalledMethodsDeps): CalledMethods {
  const { everyMs = 10_000 } = deps;
  let troubles: readonly string[] = [];
  let looking: Promise<void> | null = null;
  let lookedAtMs = Number.NEGATIVE_INFINITY;

  const lookOnce = async (): Promise<void> => {
    try {
      const found = await findTroubles(deps);
      const isNews = found.join('\n') !== troubles.join('\n');
      troubles = found;
      if (isNews && found.length > 0) deps.onTroubles(found);
    } catch (error) {
      deps.onError(error);
    } finally {
      lookedAtMs = performance.now();
      looking = null;
    }
  };
  const look = (): Promise<void> => (looking ??= lookOnce());

  return {
    look,
    troubles() {
      if (performance.now() - lookedAtMs >= everyMs) void look();
      return troubles;
    },
  };
}

/** Each service is asked once, however many workflows call it. */
async function findTroubles({ workflows, askMethods }: CalledMethodsDeps): Promise<readonly string[]> {
  const asked = new Map<string, ReturnType<AskMethods>>();
  const askOnce: AskMethods = (service) => {
    const answer = asked.get(service) ?? askMethods(service);
    asked.set(service, answer);
    return answer;
  };
  const found = new Set<string>();
  for (const { workflow } of await workflows.list()) {
    const { flaws, unchecked } = await checkMethods(askOnce, workflow);
    for (const { step, message } of flaws) found.add(`${workflow.name}: step ${step}: ${message}`);
    for (const { service, reason } of unchecked)
      found.add(`what ${service} can be called for is not known: ${reason}`);
  }
  return [...found];
}
