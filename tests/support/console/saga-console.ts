import { startSagaSystem, step, stepWithoutUndo, type SagaSystem } from '../saga-system.ts';
import { untilBuilt, type ConsoleSystem } from './console-system.ts';

/** The console of a server that runs sagas, with the service that they call. */
export type SagaConsole = Readonly<{
  at: SagaSystem;
  system: Pick<ConsoleSystem, 'url' | 'tokenOf'>;
  /** The name of a registered workflow: reserve, charge, and ship as its pivot. */
  workflow: string;
  drop(): Promise<void>;
}>;

export async function startSagaConsole(
  options: Parameters<typeof startSagaSystem>[0] = {},
): Promise<SagaConsole> {
  const at = await startSagaSystem(options);
  await untilBuilt(at.system.api);
  const workflow = await at.register([
    step('reserve'),
    step('charge'),
    stepWithoutUndo('ship', { pivot: true }),
  ]);
  return {
    at,
    system: { url: at.system.url, tokenOf: async () => null },
    workflow,
    drop: () => at.drop(),
  };
}
