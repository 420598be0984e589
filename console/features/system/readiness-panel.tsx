import { useQuery } from '@tanstack/react-query';
import { useContext, useId, useSyncExternalStore } from 'react';
import { useApi } from '../../components/session/api-context.ts';
import { useMay } from '../../components/session/use-may.ts';
import { FailedState, Skeleton } from '../../components/states/panel-states.tsx';
import { StatusBadge } from '../../components/status/status-badge.tsx';
import { useText } from '../../components/text/use-text.ts';
import { ClockContext } from '../../components/time/clock.ts';
import { Time } from '../../components/time/time.tsx';
import type { SystemStatus } from '../../lib/server-shapes.ts';
import { FactTable } from './system-panel.tsx';
import styles from './system.module.css';
import { systemTexts } from './texts/system-texts.ts';

const everyMs = 3000;
/** An answer that is older says nothing about now. */
const staleMs = 15_000;

/**
 * The checks of the process that answers. A light that was green before is no answer: after an error, or without a new
 * answer for a while, the status is not known.
 */
export function ReadinessPanel() {
  const t = useText(systemTexts);
  const api = useApi();
  const may = useMay('system:status:view');
  const id = useId();
  const query = useQuery({
    queryKey: ['system', 'status'],
    queryFn: ({ signal }) => api.get<SystemStatus>('/api/v1/system', signal),
    enabled: may.isAllowed,
    refetchInterval: everyMs,
    retry: false,
  });
  const isStale = useIsOlder(query.dataUpdatedAt, staleMs);
  const { data, error } = query;
  const isKnown = data !== undefined && error === null && !isStale;
  return (
    <section className={styles['panel']} data-wide aria-labelledby={id}>
      <h2 id={id}>{t.readiness}</h2>
      {may.isAllowed ? null : <p>{may.reason}</p>}
      {error === null ? null : <FailedState error={error} onRetry={() => void query.refetch()} />}
      {query.isPending && may.isAllowed && error === null ? <Skeleton rows={3} /> : null}
      {data === undefined && error === null ? null : (
        <p className={styles['line']} role="status">
          <StatusBadge status={isKnown ? data.status : 'unknown'} isFilled />
          <strong>{isKnown ? t[data.status] : t.unknown}</strong>
        </p>
      )}
      {data === undefined ? null : (
        <>
          <p className={styles['hint']}>
            {t.readinessOf(data.replica, data.version)} · {t.checkedAt} <Time at={data.checked_at} />
          </p>
          {isKnown ? <Checks checks={data.checks} /> : null}
        </>
      )}
    </section>
  );
}

/** What fails first. */
function Checks({ checks }: Pick<SystemStatus, 'checks'>) {
  const t = useText(systemTexts);
  const rank = { unhealthy: 0, degraded: 1, healthy: 2 };
  const sorted = checks.toSorted((a, b) => rank[a.status] - rank[b.status]);
  return (
    <FactTable
      label={t.readiness}
      columns={[{ title: t.check }, { title: t.status }, { title: t.message }]}
      rows={sorted.map(({ name, status, message }) => [
        name,
        <StatusBadge key={name} status={status} />,
        message ?? '–',
      ])}
    />
  );
}

function useIsOlder(sinceMs: number, limitMs: number): boolean {
  const clock = useContext(ClockContext);
  return useSyncExternalStore(clock.subscribe, () => sinceMs > 0 && clock.now() - sinceMs > limitMs);
}
