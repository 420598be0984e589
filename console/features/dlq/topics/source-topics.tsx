import { Link } from '@tanstack/react-router';
import { useId } from 'react';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { FactsTable } from './facts-table.tsx';
import { Balance, lagText, SourceState } from './source-words.tsx';
import type { SourceTopic } from './sources-of.ts';
import { topicsTexts } from './texts/topics-texts.ts';
import styles from './topics.module.css';
import type { useSourceTopics } from './use-topics.ts';

/** The dead-letter topics that are read; nothing for those who may not see them. */
export function SourceTopics({ reading }: Readonly<{ reading: ReturnType<typeof useSourceTopics> }>) {
  const t = useText(topicsTexts);
  const id = useId();
  if (reading === null) return null;
  return (
    <section className={styles['panel']} aria-labelledby={id}>
      <h2 id={id}>{t.sources}</h2>
      <LoadedPanel
        loaded={reading.loaded}
        onRetry={reading.refetch}
        renderEmpty={() => null}
        skeletonRows={2}
      >
        {(sources) =>
          sources.length === 0 ? (
            <p className={styles['hint']}>{t.noSources}</p>
          ) : (
            <>
              <p className={styles['hint']}>{t.sourcesHint}</p>
              <FactsTable
                label={t.sources}
                columns={[
                  { title: t.topic },
                  { title: t.state },
                  { title: t.partitions, isNumber: true },
                  { title: t.lag, isNumber: true },
                  { title: t.lost, isNumber: true },
                  { title: t.accounting },
                ]}
                rows={sources.map((source) => ({ id: source.topic, cells: cellsOf(source, t.lagUnknown) }))}
              />
            </>
          )
        }
      </LoadedPanel>
    </section>
  );
}

function cellsOf(source: SourceTopic, unknown: string) {
  const { topic, partitions, state, lag, lost, isBalanced } = source;
  return [
    <Link key="topic" to="/dlq/topics" search={{ topic }}>
      {topic}
    </Link>,
    <SourceState key="state" state={state} />,
    formatCount(partitions.length),
    lagText(lag, unknown),
    formatCount(lost),
    <Balance key="balance" is={isBalanced} />,
  ];
}
