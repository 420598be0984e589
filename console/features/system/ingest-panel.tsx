import { StatusBadge } from '../../components/status/status-badge.tsx';
import { useText } from '../../components/text/use-text.ts';
import type { Operations } from '../../lib/server-shapes.ts';
import { formatCount } from '../../lib/sizes.ts';
import { FactTable, SystemPanel } from './system-panel.tsx';
import styles from './system.module.css';
import { systemTexts } from './texts/system-texts.ts';

type Sources = Operations['listSources']['answer'];
type Source = Sources['sources'][number];

const shown = 20;

/** Partitions of dead-letter topics: those in trouble or behind first. */
export function IngestPanel() {
  const t = useText(systemTexts);
  return (
    <SystemPanel<Sources> title={t.ingest} path="/api/v1/dlq/sources" permission="dlq:sources:view">
      {({ sources }) =>
        sources.length === 0 ? (
          <>
            <p>{t.noSources}</p>
            <p className={styles['hint']}>{t.noSourcesHint}</p>
          </>
        ) : (
          <Partitions sources={sources} />
        )
      }
    </SystemPanel>
  );
}

function Partitions({ sources }: Sources) {
  const t = useText(systemTexts);
  const sorted = sources.toSorted((a, b) => weight(b) - weight(a));
  const first = sorted.slice(0, shown);
  const behind = sources.filter(({ lag }) => (lag ?? 0) > 0);
  const unknown = sources.filter(({ lag, state }) => lag === null && state !== 'gone').length;
  return (
    <>
      <p>
        {t.lagOf(
          behind.reduce((sum, { lag }) => sum + (lag ?? 0), 0),
          behind.length,
        )}
      </p>
      {unknown === 0 ? null : <p className={styles['trouble']}>{t.lagUnknown(unknown)}</p>}
      <FactTable
        label={t.ingest}
        columns={[
          { title: t.partition },
          { title: t.state },
          { title: t.lag, isNumber: true },
          { title: t.owner },
          { title: t.error },
        ]}
        rows={first.map((source) => [
          `${source.topic} / ${source.partition}`,
          <StatusBadge key="state" status={source.state} role={roleOf(source)} />,
          source.lag === null ? '?' : formatCount(source.lag),
          source.owner ?? '–',
          source.last_error ?? '–',
        ])}
      />
      {sorted.length > shown ? <p>{t.moreSources(sorted.length - shown)}</p> : null}
    </>
  );
}

function roleOf({ state }: Source): 'done' | 'retry' | 'attention' | 'ended' {
  switch (state) {
    case 'reading':
      return 'done';
    case 'waiting':
      return 'retry';
    case 'stopped':
      return 'attention';
    case 'gone':
      return 'ended';
  }
}

function weight(source: Source): number {
  const trouble = { stopped: 2e15, waiting: 1e15, reading: 0, gone: 0 }[source.state];
  return trouble + (source.lag ?? 5e14);
}
