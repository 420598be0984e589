import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useContext, useMemo } from 'react';
import type { Column } from '../../../components/list/column.ts';
import { ListTable } from '../../../components/list/list-table.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { Glyph } from '../../../components/status/glyph.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { ClockContext } from '../../../components/time/clock.ts';
import { Time } from '../../../components/time/time.tsx';
import { printTerm } from '../../../lib/filter/filter.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Operations, Schedule } from '../../../lib/server-shapes.ts';
import type { StatusRole } from '../../../lib/status/status-roles.ts';
import { schedulesTexts } from './texts/schedules-texts.ts';

type ScheduleList = Operations['listSchedules']['answer'];

const everyMs = 10_000;
/** A worker looks at the schedules once a minute at the latest. */
const lateMs = 90_000;
const missed: StatusRole = 'attention';
const example = `jobs:
  cron:
    nightly-report: {schedule: "0 3 * * *", time_zone: Europe/Berlin, queue: reports}`;

/** What runs at set times: when next, when last, and whether something was missed. */
export function SchedulesPage() {
  const t = useText(schedulesTexts);
  const api = useApi();
  const columns = useScheduleColumns();
  const query = useQuery({
    queryKey: ['jobs', 'schedules'],
    queryFn: ({ signal }) => api.get<ScheduleList>('/api/v1/jobs/schedules', signal),
    refetchInterval: everyMs,
  });
  return (
    <Page title={t.schedules}>
      <LoadedPanel
        loaded={loadedOf(query, ({ schedules }) => (schedules.length === 0 ? 'not_set_up' : null))}
        onRetry={() => void query.refetch()}
        renderEmpty={() => (
          <EmptyState title={t.noSchedules}>
            <p>{t.noSchedulesHint}</p>
            <pre>{example}</pre>
          </EmptyState>
        )}
      >
        {({ schedules }, isRefreshing) => (
          <ListTable
            caption={t.listCaption}
            rows={schedules}
            idOf={({ name }) => name}
            nameOf={({ name }) => name}
            linkOf={({ queue }) => ({
              to: '/jobs/list',
              search: { q: printTerm({ qualifier: 'queue', value: queue, isExcluded: false }) },
            })}
            columns={columns}
            isRefreshing={isRefreshing}
            initialCursor=""
          />
        )}
      </LoadedPanel>
    </Page>
  );
}

function useScheduleColumns(): readonly Column<Schedule>[] {
  const t = useText(schedulesTexts);
  return useMemo(
    () => [
      { id: 'name', title: t.name, width: '18%', isPrimary: true, render: ({ name }) => name },
      { id: 'schedule', title: t.schedule, width: '14%', render: (row) => <code>{row.schedule}</code> },
      { id: 'zone', title: t.zone, width: '14%', render: (row) => row.time_zone },
      { id: 'queue', title: t.queue, width: '14%', render: ({ queue }) => queue },
      {
        id: 'next',
        title: t.next,
        textOf: ({ next_at: next, due_at: due }) => due ?? next ?? '',
        render: (row) => <Next schedule={row} />,
      },
      {
        id: 'last',
        title: t.last,
        width: '164px',
        render: ({ last }) => (last === null ? t.neverRan : <Time at={last.tick_at} />),
      },
      {
        id: 'job',
        title: t.lastJob,
        width: '132px',
        render: ({ last }) =>
          last === null ? (
            '–'
          ) : last.status === null ? (
            t.jobGone
          ) : (
            <Link to="/jobs/list/$id" params={{ id: last.job_id }}>
              <StatusBadge status={last.status} />
            </Link>
          ),
      },
    ],
    [t],
  );
}

function Next({ schedule }: Readonly<{ schedule: Schedule }>) {
  const t = useText(schedulesTexts);
  const clock = useContext(ClockContext);
  const { known, due_at: due, next_at: next } = schedule;
  if (!known)
    return (
      <>
        <Glyph role={missed} /> {t.notSeen}
      </>
    );
  if (due !== null && clock.now() - Date.parse(due) > lateMs)
    return (
      <>
        <Glyph role={missed} /> {t.due} <Time at={due} />
      </>
    );
  return next === null ? t.never : <Time at={next} />;
}
