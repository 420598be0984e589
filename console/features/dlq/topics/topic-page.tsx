import { Link, useNavigate } from '@tanstack/react-router';
import { Button } from '../../../components/button/button.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { Page } from '../../../components/navigation/page.tsx';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { printFilter, printTerm } from '../../../lib/filter/filter.ts';
import { formatCount } from '../../../lib/sizes.ts';
import type { Topic } from './sources-of.ts';
import { topicsTexts } from './texts/topics-texts.ts';
import { rateText } from './topic-columns.tsx';
import { TopicPartitions } from './topic-partitions.tsx';
import { TopicPolicies } from './topic-policies.tsx';
import styles from './topics.module.css';
import { useTopics } from './use-topics.ts';

const statuses = ['PENDING', 'RETRYING', 'DEAD', 'RESOLVED'] as const;

/** One topic: how much failed, where it goes, what retries it, and whether everything was read. */
export function TopicPage({ topic }: Readonly<{ topic: string }>) {
  const t = useText(topicsTexts);
  const { loaded, refetch } = useTopics(topic);
  const found = loaded.state === 'rows' ? loaded.rows.topics[0] : undefined;
  return (
    <Page title={t.topicOf(topic)} actions={found === undefined ? undefined : <Actions found={found} />}>
      <LoadedPanel
        loaded={loaded}
        onRetry={refetch}
        skeletonRows={2}
        renderEmpty={() => (
          <EmptyState title={t.empty}>
            <p>{t.emptyHint}</p>
          </EmptyState>
        )}
      >
        {({ topics: [one] }) => (one === undefined ? null : <Figures found={one} />)}
      </LoadedPanel>
      <TopicPolicies names={found?.policies.map(({ name }) => name) ?? null} />
      <TopicPartitions topic={topic} from={found?.sources ?? []} />
    </Page>
  );
}

function Actions({ found }: Readonly<{ found: Topic }>) {
  const t = useText(topicsTexts);
  const navigate = useNavigate();
  const may = useMay('dlq:redrives:plan');
  const { topic, counts } = found;
  const open = (counts['PENDING'] ?? 0) + (counts['DEAD'] ?? 0);
  const reason = may.reason ?? (open === 0 ? t.nothingToRedrive : undefined);
  const q = printTerm({ qualifier: 'topic', value: topic, isExcluded: false });
  const plan = (): void => void navigate({ to: '/dlq/redrives/new', search: { q } });
  usePageKeys({ r: reason === undefined ? plan : undefined });
  return (
    <>
      <LinkButton to="/dlq/groups" search={{ q }}>
        {t.showGroups}
      </LinkButton>
      <LinkButton to="/dlq/messages" search={{ q }}>
        {t.showMessages(found.total)}
      </LinkButton>
      <Button kind="primary" keys="r" disabledReason={reason} onPress={plan}>
        {t.planRedrive}
      </Button>
    </>
  );
}

function Figures({ found }: Readonly<{ found: Topic }>) {
  const t = useText(topicsTexts);
  const { topic, counts, oldest_pending_at: oldest, arrived_per_minute: rate, unroutable, sources } = found;
  const unrouted = printFilter([
    { qualifier: 'topic', value: topic, isExcluded: false },
    { qualifier: 'is', value: 'unroutable', isExcluded: false },
  ]);
  return (
    <>
      <div className={styles['summary']}>
        {statuses.map((status) => (
          <StatusBadge key={status} status={status} detail={formatCount(counts[status] ?? 0)} />
        ))}
        <span>
          {t.rate} {t.perMinute(rateText(rate))}
        </span>
        <span>
          {t.oldest} <Time at={oldest} />
        </span>
        {sources.length === 0 ? null : (
          <span>
            {t.cameFrom} <code>{sources.join(', ')}</code>
          </span>
        )}
        <span>
          {t.routing}: {unroutable === 0 ? t.backTo : t.noRoute(unroutable)}
        </span>
      </div>
      {unroutable === 0 ? null : (
        <p className={styles['panel']}>
          <span>
            {t.noRouteHint}{' '}
            <Link to="/dlq/messages" search={{ q: unrouted }}>
              {t.routeThem}
            </Link>
          </span>
        </p>
      )}
    </>
  );
}
