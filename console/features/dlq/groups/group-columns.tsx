import { Sparkbars } from '../../../components/charts/sparkbars.tsx';
import { kitTexts } from '../../../components/kit-texts/kit-texts.ts';
import type { Column } from '../../../components/list/column.ts';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { Group } from '../../../lib/server-shapes.ts';
import { useMemo } from 'react';
import { GroupBadges } from './group-badges.tsx';
import { Chips } from './chips.tsx';
import styles from './groups.module.css';
import { groupsTexts } from './texts/groups-texts.ts';
import { StatusCounts } from './status-counts.tsx';

export function useGroupColumns(): readonly Column<Group>[] {
  const t = useText(groupsTexts);
  const kit = useText(kitTexts);
  return useMemo(
    () => [
      {
        id: 'error',
        title: t.error,
        isPrimary: true,
        render: (group) => (
          <span className={styles['error']}>
            <GroupBadges badges={group.badges} /> <GroupTitle group={group} />
          </span>
        ),
      },
      {
        id: 'topics',
        title: t.topics,
        width: '12%',
        render: ({ topics }) => <Chips values={topics} more={t.more} />,
      },
      {
        id: 'consumerGroups',
        title: t.consumerGroups,
        width: '10%',
        render: ({ consumer_groups: groups }) => <Chips values={groups} more={t.more} />,
      },
      {
        id: 'messages',
        title: t.messages,
        width: '168px',
        textOf: ({ counts }) => JSON.stringify(counts),
        render: ({ counts }) => <StatusCounts counts={counts} />,
      },
      {
        id: 'trend',
        title: t.trend,
        width: '112px',
        render: ({ trend }) => (
          <Sparkbars
            values={trend}
            label={kit.lastHours(
              trend.reduce((sum, one) => sum + one, 0),
              Math.max(...trend),
            )}
          />
        ),
      },
      {
        id: 'first',
        title: t.first,
        width: '152px',
        render: (group) => <Time at={group.first_at} />,
      },
      {
        id: 'last',
        title: t.last,
        width: '152px',
        render: (group) => <Time at={group.last_at} />,
        textOf: (group) => group.last_at,
      },
    ],
    [t, kit],
  );
}

/** The class, and the message with its variable parts replaced; not twice if the one begins with the other. */
function GroupTitle({ group }: Readonly<{ group: Pick<Group, 'title' | 'error_class'> }>) {
  const { title, error_class: errorClass } = group;
  const name = errorClass?.split(/[.$]/).at(-1) ?? '';
  if (name === '' || title.startsWith(name) || title.startsWith(errorClass ?? ''))
    return <strong>{title}</strong>;
  return (
    <>
      <strong title={errorClass ?? undefined}>{name}</strong> {title}
    </>
  );
}
