import type { LeasedSaga } from './leased-sagas.ts';
import type { ServiceCircuits } from './service-circuits.ts';

/** Above the longest call: for the claim before it and the settle after it. */
const marginMs = 10_000;

/** The service that the saga waits for, if it was woken to find out whether that is back. */
export async function takeProbe(
  { takeProbe: take }: ServiceCircuits,
  { id, workflow, state }: LeasedSaga,
): Promise<string | null> {
  if (state.waiting === null) return null;
  const { service } = state.waiting;
  const maxCallMs = Math.max(...workflow.steps.map(({ timeoutMs }) => timeoutMs));
  return (await take(service, id, maxCallMs + marginMs)) ? service : null;
}
