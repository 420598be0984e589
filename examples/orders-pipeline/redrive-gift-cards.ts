import { actor, callRedrive as call, until, type OperatorOptions } from './call-redrive.ts';

export type GiftCardsOptions = OperatorOptions &
  Readonly<{
    /** Told when the canary has stopped the redrive. */
    onStopped: (redriveId: string) => void;
  }>;

type Redrive = Readonly<{ id: string; state: string; actor: string }>;
type Group = Readonly<{ fingerprint: string; title: string; count: number }>;

/** With fewer messages nothing would be left behind the canary. */
const fewest = 3;

/**
 * An operator who is too early: redrives the gift card orders while the bug is still there. The canary sends one of
 * them, sees it come back, and stops the redrive, so the others keep their attempts. Once the bug is fixed, the redrive
 * can be resumed. A redrive that an earlier run has left stopped is enough.
 */
export async function redriveGiftCards(options: GiftCardsOptions): Promise<void> {
  const { signal, onStopped } = options;
  const left = (await call<Readonly<{ redrives: readonly Redrive[] }>>(options, '/redrives?page_size=100'))
    .redrives;
  const before = left.find((one) => one.actor === actor && one.state === 'stopped');
  if (before !== undefined) return onStopped(before.id);

  const fingerprint = await until(signal, () => findGroup(options));
  if (fingerprint === null) return;
  const { id } = await call<Redrive>(options, '/redrives', {
    filter: { topic: 'orders.v1', fingerprint },
    reason: 'the bug should be fixed',
    canary: { stages: [1, 5], watch_seconds: 5 },
  });
  const inState = async (...states: readonly string[]): Promise<string | null> => {
    const { state } = await call<Redrive>(options, `/redrives/${id}`);
    return states.includes(state) ? state : null;
  };
  const planned = await until(signal, () => inState('planned', 'failed', 'cancelled'));
  if (planned !== 'planned') return;
  await call(options, `/redrives/${id}/start`, {});
  const ended = await until(signal, () => inState('stopped', 'finished', 'cancelled'));
  if (ended === 'stopped') onStopped(id);
}

async function findGroup(options: GiftCardsOptions): Promise<string | null> {
  const path = '/groups?topic=orders.v1&status=PENDING&page_size=100';
  const { groups } = await call<Readonly<{ groups: readonly Group[] }>>(options, path);
  const group = groups.find(({ title, count }) => title.includes('gift card') && count >= fewest);
  return group?.fingerprint ?? null;
}
