import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Column } from '../../../components/list/column.ts';
import { ListTable } from '../../../components/list/list-table.tsx';
import { usePagedRows } from '../../../components/list/use-paged-rows.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { FollowedRedrive } from '../../../lib/live/live-events.ts';
import type { Operations, Redrive } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { outcomeCounts } from './redrive-numbers.ts';
import styles from './redrives.module.css';
import { redrivesTexts } from './texts/redrives-texts.ts';

type ItemList = Operations['listRedriveItems']['answer'];
type Item = ItemList['items'][number];

/** Every message of the redrive with its outcome. */
export function RedriveOutcomes({ redrive }: Readonly<{ redrive: Redrive }>) {
  const t = useText(redrivesTexts);
  const api = useApi();
  const navigate = useNavigate();
  const { outcome = '' } = useSearch({ strict: false });
  const columns = useColumns();
  const isThis = (redrives: readonly FollowedRedrive[]): boolean =>
    redrives.some(({ id }) => id === redrive.id);
  const path = `/api/v1/dlq/redrives/${encodeURIComponent(redrive.id)}/items`;
  const { loaded, more, refetch, live } = usePagedRows<ItemList, Item>({
    key: ['dlq', 'redrive-items', redrive.id],
    path,
    parameters: outcome === '' ? [] : [['outcome', outcome]],
    rowsOf: ({ items }) => items,
    whyEmpty: outcome === '' ? 'nothing' : 'filter',
    live: { slices: ['dlq'], areOwn: isThis, idOf: ({ message_id: id }) => id },
  });
  // A window that is open does not make an outcome of its own: quiet ones are published.
  const choices = outcomeCounts(redrive).filter((one) => one.outcome !== 'quiet');
  return (
    <section className={styles['panel']} aria-labelledby="outcomes">
      <h2 id="outcomes">{t.outcomes}</h2>
      <div className={styles['buttons']}>
        <label>
          {t.outcome}{' '}
          <select
            className={styles['select']}
            value={outcome}
            onChange={(event) =>
              void navigate({ to: '.', search: { outcome: event.target.value }, replace: true })
            }
          >
            <option value="">{t.anyOutcome}</option>
            {choices.map((one) => (
              <option key={one.outcome} value={one.outcome}>
                {t[one.outcome]}
              </option>
            ))}
          </select>
        </label>
        <a href={api.url(`${path}?format=ndjson${outcome === '' ? '' : `&outcome=${outcome}`}`)} download>
          {t.download}
        </a>
      </div>
      <LoadedPanel loaded={loaded} onRetry={refetch} renderEmpty={() => <EmptyState title={t.noOutcomes} />}>
        {(items, isRefreshing) => (
          <ListTable
            caption={t.outcomesCaption}
            rows={items}
            idOf={({ position }) => String(position)}
            nameOf={({ message_id: id }) => id}
            linkOf={({ message_id: id }) => ({ to: `/dlq/messages/${id}` })}
            columns={columns}
            more={more}
            live={live}
            isRefreshing={isRefreshing}
          />
        )}
      </LoadedPanel>
    </section>
  );
}

function useColumns(): readonly Column<Item>[] {
  const t = useText(redrivesTexts);
  return useMemo(
    () => [
      {
        id: 'position',
        title: t.position,
        width: '80px',
        isNumber: true,
        render: ({ position }) => formatCount(position),
      },
      {
        id: 'message',
        title: t.message,
        width: '24%',
        isPrimary: true,
        render: ({ message_id: id }) => <code>{id}</code>,
      },
      {
        id: 'outcome',
        title: t.outcome,
        width: '140px',
        textOf: ({ outcome }) => outcome,
        render: ({ outcome }) => <StatusBadge status={outcome} />,
      },
      {
        id: 'attempt',
        title: t.attempt,
        width: '72px',
        isNumber: true,
        render: ({ attempt }) => attempt ?? '–',
      },
      {
        id: 'place',
        title: t.place,
        width: '22%',
        render: ({ target, partition, offset }) =>
          offset === null ? target : `${target} / ${partition} / ${offset}`,
      },
      { id: 'note', title: t.note, render: ({ reason }) => reason ?? '' },
      {
        id: 'settled',
        title: t.settled,
        width: '152px',
        render: (item) => <Time at={item.settled_at} />,
      },
    ],
    [t],
  );
}
