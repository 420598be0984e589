import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Operations } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { FactsTable } from './facts-table.tsx';
import { Balance, lagText, SourceState } from './source-words.tsx';
import { accountOf, type Account, type Source } from './sources-of.ts';
import { topicsTexts } from './texts/topics-texts.ts';
import styles from './topics.module.css';

type Props = Readonly<{ topic: string; from: readonly string[] }>;

const everyMs = 10_000;

/** Each partition that its messages came from: how far it is read, and its account. */
export function TopicPartitions({ topic, from }: Props) {
  const t = useText(topicsTexts);
  const id = useId();
  const api = useApi();
  const may = useMay('dlq:sources:view');
  const query = useQuery({
    queryKey: ['dlq', 'partitions'],
    queryFn: async ({ signal }) => {
      const [{ sources }, { partitions }] = await Promise.all([
        api.get<Operations['listSources']['answer']>('/api/v1/dlq/sources', signal),
        api.get<Operations['getAccounting']['answer']>('/api/v1/dlq/accounting', signal),
      ]);
      return { sources, accounts: partitions };
    },
    enabled: may.isAllowed,
    refetchInterval: everyMs,
  });
  return (
    <section className={styles['panel']} aria-labelledby={id}>
      <h2 id={id}>{t.partitions}</h2>
      {may.isAllowed ? (
        <LoadedPanel
          loaded={loadedOf(query, () => null)}
          onRetry={() => void query.refetch()}
          renderEmpty={() => null}
          skeletonRows={2}
        >
          {({ sources, accounts }) => (
            <Partitions
              sources={sources.filter((source) => source.topic === topic || from.includes(source.topic))}
              accounts={accounts}
            />
          )}
        </LoadedPanel>
      ) : (
        <p className={styles['hint']}>{may.reason}</p>
      )}
    </section>
  );
}

function Partitions({
  sources,
  accounts,
}: Readonly<{ sources: readonly Source[]; accounts: readonly Account[] }>) {
  const t = useText(topicsTexts);
  if (sources.length === 0) return <p className={styles['hint']}>{t.noSourcesOfTopic}</p>;
  return (
    <FactsTable
      label={t.partitions}
      columns={[
        { title: t.partition },
        { title: t.state },
        { title: t.position, isNumber: true },
        { title: t.end, isNumber: true },
        { title: t.lag, isNumber: true },
        ...[t.passed, t.stored, t.folded, t.notRecords, t.lost].map((title) => ({ title, isNumber: true })),
        { title: t.accounting },
        { title: t.owner },
        { title: t.error },
      ]}
      rows={sources.map((source) => {
        const account = accountOf(source, accounts);
        const figures = [
          account?.passed,
          account?.stored,
          account?.folded,
          account?.not_records,
          account?.lost,
        ];
        return {
          id: `${source.cluster_id} ${source.topic_id} ${source.partition}`,
          cells: [
            `${source.topic} / ${source.partition}`,
            <SourceState key="state" state={source.state} />,
            formatCount(source.position),
            lagText(source.end, t.lagUnknown),
            source.state === 'gone' ? '–' : lagText(source.lag, t.lagUnknown),
            ...figures.map((figure) => (figure === undefined ? '–' : formatCount(figure))),
            <Balance key="balance" is={account?.balanced ?? null} />,
            source.owner ?? '–',
            source.last_error ?? '–',
          ],
        };
      })}
    />
  );
}
