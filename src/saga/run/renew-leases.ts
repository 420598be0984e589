import { sleep, type Clock } from '../../kernel/clock.ts';
import { createLeaseRenewer } from '../../platform/work/lease-renewer.ts';
import type { Renewed } from '../../platform/work/work.ts';
import type { LeasedSaga, LeasedSagas } from './leased-sagas.ts';

export type RenewDeps = Readonly<{
  clock: Clock;
  leased: LeasedSagas;
  leaseMs: number;
  renew: (sagas: readonly LeasedSaga[], leaseMs: number) => Promise<Renewed<LeasedSaga>>;
  onError: (what: string, error: unknown) => void;
}>;

/** Between two checks of the leases while the engine stops. */
const checkAfterStopMs = 100;

/** Renews leases until the engine stops and no saga is leased any more. */
export async function renewLeases(deps: RenewDeps, stopping: AbortSignal): Promise<void> {
  const { clock, leased, leaseMs, onError } = deps;
  const renewer = createLeaseRenewer<LeasedSaga>({
    clock,
    leaseMs,
    leased: leased.all,
    renew: deps.renew,
    onRenewed({ renewed, lost, endsAtMs }) {
      for (const saga of renewed) leased.renew(saga, endsAtMs);
      for (const saga of lost) leased.lose(saga);
    },
  });
  while (!stopping.aborted || leased.all().length > 0) {
    // While the engine stops, it must notice at once which sagas it has lost: their calls may never end.
    if (stopping.aborted) renewer.checkAll();
    await renewer.renewDue().catch((error: unknown) => onError('renewing leases', error));
    await (stopping.aborted ? sleep(checkAfterStopMs) : sleep(leaseMs / 30, stopping));
  }
}
