import { useNavigate, useSearch } from '@tanstack/react-router';
import { ListTable } from '../../../components/list/list-table.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { printTerm } from '../../../lib/filter/filter.ts';
import { SourceTopics } from './source-topics.tsx';
import type { SourceTopic, Topic } from './sources-of.ts';
import { topicsTexts } from './texts/topics-texts.ts';
import { useTopicColumns } from './topic-columns.tsx';
import { TopicPage } from './topic-page.tsx';
import styles from './topics.module.css';
import { useSourceTopics, useTopics } from './use-topics.ts';

const maxShown = 500;

/** All topics, or the one of the address: a topic may be called like a page, so it is no part of the path. */
export function TopicsPage() {
  const { topic = '' } = useSearch({ strict: false });
  return topic === '' ? <AllTopics /> : <TopicPage key={topic} topic={topic} />;
}

function AllTopics() {
  const t = useText(topicsTexts);
  const { loaded, refetch } = useTopics();
  const sources = useSourceTopics();
  const known = sources?.loaded.state === 'rows' ? sources.loaded.rows : null;
  const isRead = known?.some(({ state }) => state !== 'gone') ?? false;
  return (
    <Page title={t.topics}>
      <LoadedPanel
        loaded={loaded}
        onRetry={refetch}
        renderEmpty={() => (
          <EmptyState title={t.none}>
            {isRead ? (
              <p>{t.noneReads}</p>
            ) : (
              <>
                <p>{t.noneIdle}</p>
                <pre>kafka.dlq_topic_pattern</pre>
              </>
            )}
          </EmptyState>
        )}
      >
        {({ topics, truncated }, isRefreshing) => (
          <>
            <TopicTable topics={topics} sources={known} isRefreshing={isRefreshing} />
            {truncated === true ? <p className={styles['bar']}>{t.truncated}</p> : null}
          </>
        )}
      </LoadedPanel>
      <SourceTopics reading={sources} />
    </Page>
  );
}

type TableProps = Readonly<{
  topics: readonly Topic[];
  sources: readonly SourceTopic[] | null;
  isRefreshing: boolean;
}>;

function TopicTable({ topics, sources, isRefreshing }: TableProps) {
  const t = useText(topicsTexts);
  const { q = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const columns = useTopicColumns(sources);
  const wanted = q.trim().toLowerCase();
  const found = topics.filter(({ topic }) => topic.toLowerCase().includes(wanted));
  const shown = found.slice(0, maxShown);
  const search = (text: string): void =>
    void navigate({ to: '/dlq/topics', search: text === '' ? {} : { q: text }, replace: true });
  return (
    <>
      <div className={styles['bar']} role="search">
        <label>
          {t.search}
          <input
            type="search"
            value={q}
            spellCheck={false}
            onChange={(event) => search(event.target.value)}
          />
        </label>
        <span role="status">
          {found.length === 0
            ? t.noTopic
            : found.length > maxShown
              ? t.shownFirst(maxShown, found.length)
              : ''}
        </span>
      </div>
      {shown.length === 0 ? null : (
        <ListTable
          caption={t.listCaption}
          rows={shown}
          idOf={({ topic }) => topic}
          nameOf={({ topic }) => topic}
          linkOf={({ topic }) => ({ to: '/dlq/topics', search: { topic } })}
          columns={columns}
          isRefreshing={isRefreshing}
          {...(q === '' ? { initialCursor: '' } : {})}
          rowKeys={{
            r: ({ topic }) => void navigate({ to: '/dlq/redrives/new', search: { q: topicTerm(topic) } }),
          }}
        />
      )}
    </>
  );
}

/** The filter for messages of one topic. */
function topicTerm(topic: string): string {
  return printTerm({ qualifier: 'topic', value: topic, isExcluded: false });
}
