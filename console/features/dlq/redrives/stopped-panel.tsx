import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
import { reasonField, type Confirmation } from '../../../components/dialog/confirmation.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import type { Operations, Redrive } from '../../../lib/server-shapes.ts';
import { useCancel } from './redrive-actions.tsx';
import { printRedriveFilter } from './redrive-filter.ts';
import styles from './redrives.module.css';
import { redrivesTexts } from './texts/redrives-texts.ts';
import type { RedriveHandle } from './use-redrive.ts';

type ItemList = Operations['listRedriveItems']['answer'];

const sampleSize = 5;

/** It stopped by itself: why, what came back, and the three ways on. */
export function StoppedPanel({ redrive, handle }: Readonly<{ redrive: Redrive; handle: RedriveHandle }>) {
  const t = useText(redrivesTexts);
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const may = useMay('dlq:redrives:start');
  const cancel = useCancel(redrive, handle);
  const again = printRedriveFilter(redrive.filter);
  return (
    <section className={styles['stopped']} aria-labelledby="stopped">
      <h2 id="stopped">{t.stoppedTitle}</h2>
      <p>{redrive.state_reason}</p>
      {redrive.counts.came_back > 0 ? <CameBackSample id={redrive.id} /> : null}
      <div className={styles['buttons']}>
        {again === '' ? null : (
          <LinkButton to="/dlq/redrives/new" search={{ q: again }}>
            {t.planAgain}
          </LinkButton>
        )}
        <Button
          disabledReason={may.reason}
          onPress={() =>
            setConfirmation({
              title: t.continueTitle,
              consequence: t.continueConsequence(redrive.counts.waiting),
              action: t.continueAction,
              isDangerous: true,
              fields: [reasonField(t.reason, t.reasonHint)],
              perform: async ({ reason }) => handle.command('resume', reason),
            })
          }
        >
          {t.continueAnyway}
        </Button>
        <Button disabledReason={cancel.reason} kind="danger" onPress={() => cancel.run(setConfirmation)}>
          {cancel.label}
        </Button>
      </div>
      <ConfirmDialog confirmation={confirmation} onEnd={() => setConfirmation(null)} />
    </section>
  );
}

function CameBackSample({ id }: Readonly<{ id: string }>) {
  const t = useText(redrivesTexts);
  const api = useApi();
  const { data } = useQuery({
    queryKey: ['dlq', 'redrive-items', id, 'sample'],
    queryFn: ({ signal }) =>
      api.get<ItemList>(
        `/api/v1/dlq/redrives/${encodeURIComponent(id)}/items?outcome=came_back&page_size=${sampleSize}`,
        signal,
      ),
  });
  if (data === undefined || data.items.length === 0) return null;
  return (
    <div>
      <h3>{t.cameBackSample}</h3>
      <ul className={styles['examples']}>
        {data.items.map(({ message_id: messageId, target }) => (
          <li key={messageId}>
            <Link to="/dlq/messages/$id" params={{ id: messageId }}>
              {messageId.slice(0, 8)}
            </Link>{' '}
            {target}
          </li>
        ))}
      </ul>
    </div>
  );
}
