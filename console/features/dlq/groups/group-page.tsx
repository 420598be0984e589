import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { Button } from '../../../components/button/button.tsx';
import { CopyButton } from '../../../components/button/copy-button.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { Definitions } from '../../../components/definitions/definitions.tsx';
import { useLiveReading } from '../../../components/live/use-live-reading.ts';
import { Page } from '../../../components/navigation/page.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { printFilter } from '../../../lib/filter/filter.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { GroupDetails } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { GroupBadges } from './group-badges.tsx';
import { GroupBreakdown } from './group-breakdown.tsx';
import { GroupTrend } from './group-trend.tsx';
import styles from './groups.module.css';
import { groupsTexts } from './texts/groups-texts.ts';

/** One cause: how much, where, why it is one group, and the way to redrive it. */
export function GroupPage() {
  const t = useText(groupsTexts);
  const api = useApi();
  const { fingerprint = '' } = useParams({ strict: false });
  const query = useQuery({
    queryKey: ['dlq', 'group', fingerprint],
    queryFn: ({ signal }) =>
      api.get<GroupDetails>(`/api/v1/dlq/groups/${encodeURIComponent(fingerprint)}`, signal),
  });
  useLiveReading({ slices: ['dlq'], read: () => query.refetch() });
  const group = query.data;
  return (
    <Page
      title={group === undefined ? t.unknownGroup : t.groupOf(group.title)}
      facts={group === undefined ? undefined : <GroupBadges badges={group.badges} />}
      actions={group === undefined ? undefined : <GroupActions group={group} />}
    >
      <LoadedPanel
        loaded={loadedOf(query, () => null)}
        onRetry={() => void query.refetch()}
        renderEmpty={() => null}
      >
        {(shown) => <GroupFacts group={shown} />}
      </LoadedPanel>
    </Page>
  );
}

function GroupActions({ group }: Readonly<{ group: GroupDetails }>) {
  const t = useText(groupsTexts);
  const navigate = useNavigate();
  const may = useMay('dlq:redrives:plan');
  const { fingerprint, counts } = group;
  const open = counts.PENDING + counts.DEAD;
  const reason = may.reason ?? (open === 0 ? t.nothingToRedrive : undefined);
  return (
    <>
      <LinkButton to="/dlq/messages" search={{ q: filterOf(fingerprint) }}>
        {t.showMessages(group.count)}
      </LinkButton>
      <Button
        kind="primary"
        keys="r"
        disabledReason={reason}
        onPress={() => void navigate({ to: '/dlq/redrives/new', search: { fingerprint } })}
      >
        {t.planRedrive(open)}
      </Button>
    </>
  );
}

function filterOf(fingerprint: string): string {
  return printFilter([{ qualifier: 'fingerprint', value: fingerprint, isExcluded: false }]);
}

function GroupFacts({ group }: Readonly<{ group: GroupDetails }>) {
  const t = useText(groupsTexts);
  const { why, counts } = group;
  return (
    <>
      <div className={styles['summary']}>
        {(['PENDING', 'RETRYING', 'DEAD', 'RESOLVED'] as const).map((status) => (
          <StatusBadge key={status} status={status} detail={formatCount(counts[status])} />
        ))}
        <span>
          {t.first} <Time at={group.first_at} />
        </span>
        <span>
          {t.last} <Time at={group.last_at} />
        </span>
      </div>
      <GroupTrend trend={group.trend} />
      <section className={styles['panel']} aria-labelledby="why">
        <h2 id="why">{t.why}</h2>
        <p className={styles['hint']}>{why.version === null ? t.notMade : t.whyHint}</p>
        <Definitions
          items={[
            { term: t.class, value: why.class === null ? null : <code>{why.class}</code> },
            { term: t.template, value: why.template === null ? null : <code>{why.template}</code> },
            { term: t.frame, value: why.frame === null ? null : <code>{why.frame}</code> },
            { term: t.rules, value: why.version === null ? null : t.rulesVersion(why.version) },
            {
              term: t.fingerprint,
              value: (
                <>
                  <code>{group.fingerprint}</code>{' '}
                  <CopyButton what={t.fingerprint} text={group.fingerprint} />
                </>
              ),
            },
          ]}
        />
      </section>
      {group.count === 0 ? <EmptyState title={t.noKeys} /> : <GroupBreakdown group={group} />}
    </>
  );
}
