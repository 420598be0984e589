import type { Connection } from '../../lib/live/indicator.ts';
import { slices, type Slice } from '../../lib/live/live-events.ts';
import { formatCount, shortCount } from '../../lib/sizes.ts';
import { useLiveState } from '../../components/live/live-context.ts';
import { useMay } from '../../components/session/use-may.ts';
import { useText } from '../../components/text/use-text.ts';
import { appTexts } from '../texts/app-texts.ts';
import styles from './left-rail.module.css';
import { useInboxCount } from './use-inbox-count.ts';

/** How many need attention; a text says why that is not known. Unknown is never shown as none. */
export type Figure = Readonly<{ count: number; isAtLeast?: boolean }> | string;

/** Who may not view a slice is not told of it. */
const viewed = {
  dlq: 'dlq:messages:view',
  outbox: 'outbox:orders:view',
  jobs: 'jobs:jobs:view',
  sagas: 'saga:sagas:view',
} as const satisfies Readonly<Record<Slice, string>>;

/** The server counts no further. */
const countedUpTo = 10_000;

/** What needs attention in an area, beside its name. Areas without items have none. */
export function AreaCount({ segment }: Readonly<{ segment: string }>) {
  if (segment === 'inbox') return <InboxCount />;
  return isSlice(segment) ? <SliceCount slice={segment} /> : null;
}

function isSlice(segment: string): segment is Slice {
  return (slices as readonly string[]).includes(segment);
}

function InboxCount() {
  return <ShownFigure figure={useInboxCount()} />;
}

function SliceCount({ slice }: Readonly<{ slice: Slice }>) {
  const t = useText(appTexts);
  const may = useMay(viewed[slice]);
  const connection = useLiveState((state) => state.connection);
  const count = useLiveState((state) => state.needsAttention[slice]) ?? null;
  return <ShownFigure figure={may.reason ?? sliceFigure(count, connection, t.unknownCount)} />;
}

/** Events bring the counts, so they are known as long as events come. */
export function sliceFigure(count: number | null, connection: Connection, unknown: string): Figure {
  if (count === null || connection === 'polling' || connection === 'away') return unknown;
  return { count, isAtLeast: count >= countedUpTo };
}

export function ShownFigure({ figure }: Readonly<{ figure: Figure }>) {
  const t = useText(appTexts);
  if (typeof figure === 'string') return <span className="visually-hidden">. {figure}</span>;
  const { count, isAtLeast = false } = figure;
  const more = isAtLeast ? '+' : '';
  return (
    <>
      <span className={styles['count']} data-none={count === 0 || undefined} aria-hidden>
        <span className={styles['whole']}>
          {formatCount(count)}
          {more}
        </span>
        <span className={styles['short']}>{count === 0 ? '' : shortCount(count) + more}</span>
      </span>
      <span className="visually-hidden">. {t.needsAttention(formatCount(count) + more)}</span>
    </>
  );
}
