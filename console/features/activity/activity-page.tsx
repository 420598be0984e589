import { useNavigate, useSearch } from '@tanstack/react-router';
import { useContext, useMemo } from 'react';
import { copyText } from '../../components/button/copy-text.ts';
import { FilterBox } from '../../components/filter/filter-box.tsx';
import { NoMatch } from '../../components/filter/no-match.tsx';
import { ListTable } from '../../components/list/list-table.tsx';
import { usePagedRows } from '../../components/list/use-paged-rows.ts';
import { Page } from '../../components/navigation/page.tsx';
import { useMay } from '../../components/session/use-may.ts';
import { LoadedPanel } from '../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../components/states/panel-states.tsx';
import { useText } from '../../components/text/use-text.ts';
import { ClockContext } from '../../components/time/clock.ts';
import type { ValueCounts } from '../../lib/filter/complete-filter.ts';
import { parseFilter } from '../../lib/filter/filter.ts';
import { toQuery } from '../../lib/filter/qualifiers.ts';
import { slices } from '../../lib/live/live-events.ts';
import type { Activity, Operations } from '../../lib/server-shapes.ts';
import { useActivityColumns } from './activity-columns.tsx';
import { activityQualifiers } from './activity-qualifiers.ts';
import styles from './activity.module.css';
import { describeObject } from './objects/describe-object.ts';
import { activityTexts } from './texts/activity-texts.ts';

type ActivityList = Operations['listActivity']['answer'];

const idOf = ({ seq }: Activity): string => String(seq);

/** What people, keys and policies did, the newest first. What was refused is in the audit log alone. */
export function ActivityPage() {
  const t = useText(activityTexts);
  const { q = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const clock = useContext(ClockContext);
  const columns = useActivityColumns();
  const query = useMemo(() => toQuery(parseFilter(q), activityQualifiers, clock.now()), [q, clock]);
  const { loaded, more, refetch, live } = usePagedRows<ActivityList, Activity>({
    key: ['activity'],
    path: '/api/v1/activity',
    parameters: query.isValid ? query.parameters : [],
    rowsOf: ({ items }) => items,
    whyEmpty: q === '' ? 'nothing' : 'filter',
    isEnabled: query.isValid,
    // Acts change items. What changes none, such as a login, comes with the reading every 30 s.
    live: { slices, idOf },
  });
  const counts = useMemo(() => findValues(loaded.state === 'rows' ? loaded.rows : []), [loaded]);
  const apply = (filter: string): void =>
    void navigate({ to: '/activity', search: filter === '' ? {} : { q: filter } });
  return (
    <Page title={t.area}>
      <FilterBox value={q} onApply={apply} qualifiers={activityQualifiers} counts={counts} />
      <AuditHint />
      {query.isValid ? (
        <LoadedPanel
          loaded={loaded}
          onRetry={refetch}
          renderEmpty={(reason) =>
            reason === 'filter' ? (
              <NoMatch filter={q} onApply={apply} />
            ) : (
              <EmptyState title={t.nothing}>
                <p>{t.nothingHint}</p>
              </EmptyState>
            )
          }
        >
          {(items, isRefreshing) => (
            <ListTable
              key={q}
              caption={t.listCaption}
              rows={items}
              idOf={idOf}
              nameOf={({ resource }) => resource}
              linkOf={({ resource }) => describeObject(resource).link}
              columns={columns}
              more={more}
              live={live}
              isRefreshing={isRefreshing}
              initialCursor=""
              rowKeys={{ y: ({ resource }) => void copyText(describeObject(resource).name) }}
            />
          )}
        </LoadedPanel>
      ) : null}
    </Page>
  );
}

/** For those who may see it. */
function AuditHint() {
  const t = useText(activityTexts);
  const { isAllowed } = useMay('audit:events:view');
  if (!isAllowed) return null;
  return (
    <p className={styles['hint']}>
      {t.auditHint} <code>npx redrive audit list</code>, <code>npx redrive audit export</code>
    </p>
  );
}

/** Values to complete with: those of the rows that are loaded, the most frequent first. */
function findValues(rows: readonly Activity[]): ValueCounts {
  return {
    actor: frequent(rows.map(({ actor }) => actor)),
    action: frequent(rows.map(({ action }) => action)),
    resource: frequent(rows.map(({ resource }) => resource)),
  };
}

function frequent(values: readonly string[]): NonNullable<ValueCounts[string]> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a).map(([value]) => ({ value, count: null }));
}
