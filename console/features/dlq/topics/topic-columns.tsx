import { useMemo } from 'react';
import type { Column } from '../../../components/list/column.ts';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { formatCount } from '../../../lib/sizes.ts';
import type { StatusRole } from '../../../lib/status/status-roles.ts';
import { StatusCounts } from '../groups/status-counts.tsx';
import { Balance } from './source-words.tsx';
import { addsUp, sourcesOf, type SourceTopic, type Topic } from './sources-of.ts';
import { topicsTexts } from './texts/topics-texts.ts';

/** `sources` is null while it is not known what is read. */
export function useTopicColumns(sources: readonly SourceTopic[] | null): readonly Column<Topic>[] {
  const t = useText(topicsTexts);
  return useMemo(
    () => [
      { id: 'topic', title: t.topic, isPrimary: true, render: ({ topic }) => topic },
      {
        id: 'open',
        title: t.open,
        width: '204px',
        textOf: ({ counts }) => JSON.stringify(counts),
        render: ({ counts }) => <StatusCounts counts={counts} />,
      },
      {
        id: 'resolved',
        title: t.resolved,
        width: '92px',
        isNumber: true,
        textOf: ({ counts }) => String(counts['RESOLVED']),
        render: ({ counts }) => formatCount(counts['RESOLVED'] ?? 0),
      },
      {
        id: 'rate',
        title: t.rate,
        width: '92px',
        isNumber: true,
        render: ({ arrived_per_minute: rate }) => t.perMinute(rateText(rate)),
      },
      {
        id: 'oldest',
        title: t.oldest,
        width: '116px',
        render: ({ oldest_pending_at: at }) => <Time at={at} show="age" />,
      },
      { id: 'routing', title: t.routing, width: '16%', render: (topic) => <Routing topic={topic} /> },
      { id: 'policies', title: t.policies, width: '14%', render: (topic) => <Policies topic={topic} /> },
      {
        id: 'accounting',
        title: t.accounting,
        width: '132px',
        render: ({ topic, sources: from }) => (
          <Balance is={sources === null ? null : addsUp(sourcesOf(topic, from, sources))} />
        ),
      },
    ],
    [t, sources],
  );
}

const troubled: StatusRole = 'attention';

export function rateText(perMinute: number): string {
  return perMinute >= 10 || Number.isInteger(perMinute)
    ? formatCount(Math.round(perMinute))
    : perMinute.toFixed(1);
}

/** Where a retry of its messages goes: back where they failed, unless that is not known. */
function Routing({ topic }: Readonly<{ topic: Topic }>) {
  const t = useText(topicsTexts);
  if (topic.unroutable === 0) return <span>{t.backTo}</span>;
  return <StatusBadge status={t.noRoute(topic.unroutable)} role={troubled} />;
}

/** The policies that may retry its messages, and those of them that do not run. */
function Policies({ topic: { policies } }: Readonly<{ topic: Topic }>) {
  const t = useText(topicsTexts);
  const [first, ...others] = policies;
  if (first === undefined) return <span>{t.noPolicy}</span>;
  return (
    <span title={policies.map(({ name, state }) => `${name}: ${state}`).join('\n')}>
      {first.name}
      {others.length === 0 ? null : ` +${others.length}`}{' '}
      {policies.every(({ state }) => state === 'active') ? null : (
        <PolicyState state={policies.find(({ state }) => state !== 'active')?.state ?? first.state} />
      )}
    </span>
  );
}

export function PolicyState({ state }: Readonly<{ state: Topic['policies'][number]['state'] }>) {
  const role = { active: 'done', paused: 'queued', disabled: 'attention' } as const;
  return <StatusBadge status={state} role={role[state]} />;
}
