import { StatusBadge } from '../../components/status/status-badge.tsx';
import { useText } from '../../components/text/use-text.ts';
import { Time } from '../../components/time/time.tsx';
import type { ListedSaga } from '../../lib/server-shapes.ts';
import { waitOf } from './saga-words.ts';
import { sagasTexts } from './texts/sagas-texts.ts';

type WaitingSaga = Parameters<typeof waitOf>[0];

export function WaitingFor({ saga }: Readonly<{ saga: WaitingSaga }>) {
  const t = useText(sagasTexts);
  const wait = waitOf(saga);
  switch (wait.for) {
    case 'nothing':
      return '–';
    case 'call':
      return t.waitsForCall;
    case 'operator':
      return t.needsOperator(wait.isUndo ? t.undoOf(wait.step) : wait.step);
    case 'service':
      return t.waitsForService(wait.service);
    case 'time':
      return (
        <>
          {t.nextAttempt} <Time at={wait.at} show="age" />
        </>
      );
  }
}

/** The status, and whether somebody is needed. */
export function SagaStatus(
  props: Readonly<{ saga: Pick<ListedSaga, 'status' | 'needs_attention'>; isFilled?: boolean }>,
) {
  const t = useText(sagasTexts);
  const { saga, isFilled = false } = props;
  if (!saga.needs_attention) return <StatusBadge status={saga.status} isFilled={isFilled} />;
  const role = 'attention' as const;
  return <StatusBadge status={saga.status} role={role} detail={`· ${t.stuck}`} isFilled={isFilled} />;
}
