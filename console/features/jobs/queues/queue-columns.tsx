import { useMemo, type ReactNode } from 'react';
import { MeterBar } from '../../../components/charts/meter-bar.tsx';
import { Sparkbars } from '../../../components/charts/sparkbars.tsx';
import type { Column } from '../../../components/list/column.ts';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { Glyph } from '../../../components/status/glyph.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { Queue } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { roleOf } from '../../../lib/status/status-roles.ts';
import { formatDuration } from '../../../lib/times.ts';
import { countText, depthOf, stateOf } from './queue-words.ts';
import type { Language, TextsLike } from '../../../lib/text/catalogue.ts';
import type { en } from './texts/en.ts';
import { queuesTexts } from './texts/queues-texts.ts';

export function useQueueColumns(actionOf: (queue: Queue) => ReactNode): readonly Column<Queue>[] {
  const t = useText(queuesTexts);
  const [{ language }] = usePreferences();
  return useMemo(
    () => [
      { id: 'queue', title: t.queue, width: '15%', isPrimary: true, render: ({ queue }) => queue },
      {
        id: 'state',
        title: t.state,
        textOf: (queue) => stateOf(queue),
        render: (queue) => <State queue={queue} />,
      },
      {
        id: 'depth',
        title: t.depth,
        width: '12%',
        render: (queue) => {
          const parts = depthOf(queue);
          const said = parts.map(({ label, value }) => `${label} ${formatCount(value)}`).join(', ');
          return <MeterBar label={t.depthOf(said)} parts={parts} />;
        },
      },
      ...countColumns(t, language),
      ...speedColumns(t, language),
      { id: 'action', title: t.action, width: '132px', render: actionOf },
    ],
    [t, language, actionOf],
  );
}

type Texts = TextsLike<typeof en>;

/** How much there is, and how long it waits. */
function countColumns(t: Texts, language: Language): readonly Column<Queue>[] {
  return [
    {
      id: 'waiting',
      title: t.waiting,
      width: '92px',
      isNumber: true,
      textOf: (queue) => `${countText(queue, 'pending')} ${countText(queue, 'failed')}`,
      render: ({ counts, estimated_counts: estimated = [] }) =>
        `${estimated.some((name) => name === 'pending' || name === 'failed') ? '~' : ''}${formatCount(counts.pending + counts.failed)}`,
    },
    {
      id: 'running',
      title: t.running,
      width: '92px',
      isNumber: true,
      textOf: (queue) => countText(queue, 'running'),
      render: (queue) =>
        queue.global_concurrency === null
          ? countText(queue, 'running')
          : t.runningOf(countText(queue, 'running'), queue.global_concurrency),
    },
    {
      id: 'dead',
      title: t.dead,
      width: '84px',
      isNumber: true,
      textOf: ({ unresolved }) => String(unresolved),
      render: ({ unresolved }) =>
        unresolved === 0 ? (
          '0'
        ) : (
          <>
            <Glyph role={roleOf('dead_letter')} /> {formatCount(unresolved)}
          </>
        ),
    },
    {
      id: 'lag',
      title: t.lag,
      width: '92px',
      isNumber: true,
      render: ({ lag_seconds: lag }) => (lag === null ? '–' : formatDuration(lag * 1000, language)),
    },
  ];
}

/** How fast it goes, and may go. */
function speedColumns(t: Texts, language: Language): readonly Column<Queue>[] {
  return [
    {
      id: 'throughput',
      title: t.throughput,
      width: '152px',
      render: ({ completed_by_minute: minutes }) =>
        minutes === null ? (
          t.notKept
        ) : (
          <Sparkbars
            values={minutes}
            label={t.throughputOf(
              minutes.reduce((sum, count) => sum + count, 0),
              Math.max(0, ...minutes),
            )}
          />
        ),
    },
    {
      id: 'rate',
      title: t.rate,
      width: '104px',
      render: ({ rate_limit: rate }) =>
        rate === null ? t.noLimit : t.rateOf(rate.count, formatDuration(rate.window_ms, language)),
    },
  ];
}

function State({ queue }: Readonly<{ queue: Queue }>) {
  const t = useText(queuesTexts);
  const { paused_by: by, paused_reason: reason, target_down: down } = queue;
  const state = stateOf(queue);
  const detail =
    state === 'paused'
      ? t.paused(by, reason)
      : state === 'open'
        ? t.targetDown(down?.reason ?? '')
        : queue.has_target
          ? t.byPush
          : t.byWorkers;
  if (state === 'running') return <span>{detail}</span>;
  return (
    <span title={detail}>
      <StatusBadge status={state} /> {detail}
    </span>
  );
}
