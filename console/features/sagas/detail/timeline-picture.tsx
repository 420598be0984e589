import { Lock } from 'lucide-react';
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { SagaStep } from '../../../lib/server-shapes.ts';
import {
  laneHeight,
  layTimeline,
  type Band,
  type Bar,
  type Timeline,
} from '../../../lib/timeline/timeline.ts';
import { formatDuration } from '../../../lib/times.ts';
import { StateWord } from '../step-list.tsx';
import { sagasTexts } from '../texts/sagas-texts.ts';
import type { LogRow } from '../use-saga.ts';
import { formatTook, resultOf, tookMs } from './attempt-result.ts';
import { findNeighbour, type Direction } from './find-neighbour.ts';
import { TimelineBar, UndoHatch } from './timeline-bar.tsx';
import { TimelineLegend } from './timeline-legend.tsx';
import { TimelineMarks } from './timeline-marks.tsx';
import styles from './timeline.module.css';
import { detailTexts } from './texts/detail-texts.ts';

type Props = Readonly<{
  steps: readonly SagaStep[] | null;
  log: readonly LogRow[];
  /** When the log was read. */
  readAt: number;
  selected: string | null;
  onSelect: (id: string) => void;
}>;

/** For the turn, and below it for the pauses. */
function headOf({ turn, pauses }: Timeline): number {
  if (turn !== null) return 38;
  return pauses.length > 0 ? 22 : 0;
}

/**
 * The log as a picture: a row per action, one below it per undo, and the turn between them. Everything in it is said by
 * the table below too.
 */
export function TimelinePicture({ steps, log, readAt, selected, onSelect }: Props) {
  const t = useText(detailTexts);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const rows = useMemo(() => new Map(log.map((row) => [row.id, row])), [log]);
  const layout = useMemo(
    () => layLog(log, { stepCount: steps?.length ?? 0, now: readAt, width }),
    [log, steps, readAt, width],
  );
  const used = useMemo(() => [...new Set(log.map(resultOf))], [log]);
  return (
    <section aria-labelledby="timeline" className={styles['timeline']}>
      <h2 id="timeline">{t.timeline}</h2>
      <div className={styles['picture']}>
        <StepNames head={headOf(layout)} bands={layout.bands} steps={steps} rows={rows} />
        <div ref={box} className={styles['scroll']}>
          <Bars layout={layout} rows={rows} readAt={readAt} selected={selected} onSelect={onSelect} />
        </div>
      </div>
      <p className={styles['hint']}>{t.timelineHint}</p>
      <TimelineLegend used={used} hasUndos={layout.turn !== null} />
    </section>
  );
}

function layLog(
  log: readonly LogRow[],
  options: Readonly<{ stepCount: number; now: number; width: number }>,
): Timeline {
  const attempts = log.map(({ id, step_index: step, action: op, attempt, started_at, completed_at }) => ({
    id,
    step,
    op,
    attempt,
    startedAt: started_at === null ? options.now : Date.parse(started_at),
    endedAt: completed_at === null ? null : Date.parse(completed_at),
  }));
  return layTimeline(attempts, options);
}

/** The names stay where they are while a long picture scrolls. */
function StepNames(
  props: Readonly<{
    head: number;
    bands: readonly Band[];
    steps: readonly SagaStep[] | null;
    rows: ReadonlyMap<string, LogRow>;
  }>,
) {
  const { head, bands, steps, rows } = props;
  const all = useText(sagasTexts);
  return (
    <ol className={styles['names']} style={{ paddingTop: head }} aria-label={all.steps}>
      {bands.map(({ step, height, lanes }) => {
        const known = steps?.[step];
        const logged = rows.get(lanes[0]?.bars[0]?.id ?? '');
        return (
          <li key={step} style={{ height }}>
            <span className={styles['name']} title={known?.name ?? logged?.step_name}>
              {step + 1} {known?.name ?? logged?.step_name}
              {known?.pivot === true ? (
                <span title={all.pivot} className={styles['lock']}>
                  <Lock size={12} aria-hidden />
                  <span className="visually-hidden">{all.pivot}</span>
                </span>
              ) : null}
            </span>
            {known === undefined ? null : <StateWord state={known.state} />}
          </li>
        );
      })}
    </ol>
  );
}

function Bars(
  props: Readonly<{
    layout: Timeline;
    rows: ReadonlyMap<string, LogRow>;
    readAt: number;
    selected: string | null;
    onSelect: (id: string) => void;
  }>,
) {
  const { layout, rows, readAt, selected, onSelect } = props;
  const t = useText(detailTexts);
  const svg = useRef<SVGSVGElement>(null);
  const current = layout.bars.find(({ id }) => id === selected) ?? layout.bars.at(-1);
  const head = headOf(layout);
  const onKeyDown = (event: KeyboardEvent): void => {
    const direction = directions[event.key];
    if (direction === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const next = findNeighbour(layout.bars, current, direction);
    if (next === undefined) return;
    onSelect(next.id);
    svg.current?.querySelector<SVGGElement>(`[data-bar="${CSS.escape(next.id)}"]`)?.focus();
  };
  return (
    // One of its bars is always in the order of focus.
    // oxlint-disable-next-line jsx-a11y/interactive-supports-focus
    <svg
      ref={svg}
      width={layout.width}
      height={layout.height + head}
      viewBox={`0 ${-head} ${layout.width} ${layout.height + head}`}
      role="radiogroup"
      aria-label={t.logCaption}
      onKeyDown={onKeyDown}
      className={styles['svg']}
    >
      <UndoHatch />
      {layout.bands.map(({ step, y, height }) => (
        <rect key={step} className={styles['band']} x={0} y={y} width={layout.width} height={height} />
      ))}
      <TimelineMarks layout={layout} head={head} readAt={readAt} />
      {layout.bars.map((bar) => (
        <TimelineBar
          key={bar.id}
          bar={bar}
          row={rows.get(bar.id)}
          isSelected={bar.id === selected}
          canFocus={bar.id === current?.id}
          onSelect={onSelect}
        />
      ))}
      {layout.bands.map((band) => (
        <LaneEnds key={band.step} band={band} width={layout.width} rows={rows} />
      ))}
    </svg>
  );
}

const directions: Readonly<Record<string, Direction>> = {
  ArrowLeft: 'before',
  ArrowRight: 'after',
  ArrowUp: 'above',
  ArrowDown: 'below',
  Home: 'first',
  End: 'last',
};

const wordWidth = 170;

/** After the last bar of each row, its result in words, where there is room for it. */
function LaneEnds(props: Readonly<{ band: Band; width: number; rows: ReadonlyMap<string, LogRow> }>) {
  const { band, width, rows } = props;
  const t = useText(detailTexts);
  const [{ language }] = usePreferences();
  return band.lanes.map((lane) => {
    const last: Bar | undefined = lane.bars.at(-1);
    const y = lane.y + laneHeight / 2 + 4;
    if (last === undefined)
      return (
        <text key={lane.op} className={styles['word']} x={8} y={y}>
          {t.notStarted}
        </text>
      );
    const row = rows.get(last.id);
    if (row === undefined) return null;
    const took = formatTook(tookMs(row), (ms) => formatDuration(ms, language));
    const count = lane.bars.length > 1 ? `×${lane.bars.length}` : took;
    const end = last.x + last.width + 8;
    const first = lane.bars[0]?.x ?? 0;
    const isRoomAfter = end + wordWidth < width;
    if (!isRoomAfter && first < wordWidth) return null;
    return (
      <text
        key={lane.op}
        className={styles['word']}
        x={isRoomAfter ? end : first - 8}
        textAnchor={isRoomAfter ? 'start' : 'end'}
        y={y}
      >
        {t[resultOf(row)]} {count}
      </text>
    );
  });
}

const startWidth = 720;

function useWidth(box: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(startWidth);
  useEffect(() => {
    const { current } = box;
    if (current === null || typeof ResizeObserver === 'undefined') return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setWidth(Math.max(200, Math.floor(entry.contentRect.width)));
    });
    observer.observe(current);
    return () => observer.disconnect();
  }, [box]);
  return width;
}
