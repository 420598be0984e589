import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Column } from '../../components/list/column.ts';
import { MaskedText } from '../../components/protection/masked-text.tsx';
import { StatusBadge } from '../../components/status/status-badge.tsx';
import { useText } from '../../components/text/use-text.ts';
import { Time } from '../../components/time/time.tsx';
import { printTerm } from '../../lib/filter/filter.ts';
import type { Activity } from '../../lib/server-shapes.ts';
import { describeObject } from './objects/describe-object.ts';
import { objectsTexts } from './objects/objects-texts.ts';
import { activityTexts } from './texts/activity-texts.ts';
import { verbOf } from './verbs/verb-of.ts';
import { verbsTexts } from './verbs/verbs-texts.ts';
import styles from './activity.module.css';

export function useActivityColumns(): readonly Column<Activity>[] {
  const t = useText(activityTexts);
  const verbs = useText(verbsTexts);
  return useMemo(
    () => [
      { id: 'when', title: t.when, width: '164px', render: ({ at }) => <Time at={at} /> },
      {
        id: 'actor',
        title: t.actor,
        width: '15%',
        render: ({ actor, actor_name: name }) => <span title={actor}>{name}</span>,
      },
      {
        id: 'verb',
        title: t.verb,
        width: '17%',
        render: (row) => <span title={row.action}>{verbOf(verbs, row)}</span>,
      },
      { id: 'object', title: t.object, isPrimary: true, render: (row) => <ActObject row={row} /> },
      {
        id: 'reason',
        title: t.reason,
        width: '22%',
        render: ({ reason }) =>
          reason === null ? null : (
            <span title={reason}>
              <MaskedText text={reason} />
            </span>
          ),
      },
      {
        id: 'outcome',
        title: t.outcome,
        width: '100px',
        render: ({ outcome }) => <StatusBadge status={outcome} />,
      },
      {
        id: 'operation',
        title: t.operation,
        width: '96px',
        render: ({ operation_id: id, ...row }) =>
          id === null ? null : (
            <Link
              to="/activity"
              search={{ q: printTerm({ qualifier: 'operation', value: id, isExcluded: false }) }}
              aria-label={t.showOperationOf(verbOf(verbs, row))}
            >
              {t.showOperation}
            </Link>
          ),
      },
    ],
    [t, verbs],
  );
}

/** The kind of thing, its name, and how many if they were several. */
function ActObject({ row }: Readonly<{ row: Activity }>) {
  const t = useText(activityTexts);
  const kinds = useText(objectsTexts);
  const { kind, name } = describeObject(row.resource);
  return (
    <span title={row.resource}>
      {kinds[kind]} {name === '' ? null : <code>{name}</code>}{' '}
      {row.item_count === 1 ? null : <span className={styles['items']}>{t.items(row.item_count)}</span>}
    </span>
  );
}
