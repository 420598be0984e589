import { useMemo } from 'react';
import type { Column } from '../../../components/list/column.ts';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { ListedSaga } from '../../../lib/server-shapes.ts';
import { StepStrip } from '../step-strip.tsx';
import { sagasTexts } from '../texts/sagas-texts.ts';
import { SagaStatus, WaitingFor } from '../waiting-for.tsx';
import { listTexts } from './texts/list-texts.ts';

/** The fields of a saga that the list shows; payloads are not among them. */
export const listedFields = [
  'workflow_name',
  'status',
  'current_step',
  'steps',
  'correlation_id',
  'created_at',
  'needs_attention',
  'stuck',
  'waiting_for',
  'next_attempt_at',
] as const;

export type SagaRow = Pick<ListedSaga, 'saga_id' | (typeof listedFields)[number]>;

/** Beside a preview, which shows the rest, there is room for fewer. */
export function useSagaColumns(isNarrow: boolean): readonly Column<SagaRow>[] {
  const t = useText(listTexts);
  const all = useText(sagasTexts);
  return useMemo(() => {
    const columns: readonly Column<SagaRow>[] = [
      {
        id: 'status',
        title: all.status,
        width: '188px',
        textOf: ({ status, needs_attention: isStuck }) => `${status} ${isStuck}`,
        render: (row) => <SagaStatus saga={row} />,
      },
      {
        id: 'workflow',
        title: all.workflow,
        isPrimary: true,
        render: ({ workflow_name: name }) => name,
      },
      {
        id: 'steps',
        title: all.steps,
        width: '18%',
        textOf: ({ current_step: done, steps }) =>
          `${done} ${(steps ?? []).map(({ state }) => state).join(' ')}`,
        render: ({ current_step: done, steps }) => <StepStrip done={done} steps={steps} />,
      },
      {
        id: 'correlation',
        title: all.correlation,
        width: '16%',
        render: ({ correlation_id: id }) => (id === null ? '–' : <code title={id}>{id}</code>),
      },
      {
        id: 'waiting',
        title: t.waitingFor,
        width: '20%',
        textOf: ({ stuck, waiting_for: waiting }) => `${stuck?.step} ${waiting?.service}`,
        render: (row) => <WaitingFor saga={row} />,
      },
      { id: 'age', title: t.started, width: '152px', render: ({ created_at: at }) => <Time at={at} /> },
    ];
    return isNarrow ? columns.filter(({ id }) => id !== 'correlation' && id !== 'waiting') : columns;
  }, [t, all, isNarrow]);
}
