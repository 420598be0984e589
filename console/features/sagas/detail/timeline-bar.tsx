import type { CSSProperties } from 'react';
import { Glyph } from '../../../components/status/glyph.tsx';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { laneHeight, type Bar } from '../../../lib/timeline/timeline.ts';
import { formatDuration } from '../../../lib/times.ts';
import { sagasTexts } from '../texts/sagas-texts.ts';
import type { LogRow } from '../use-saga.ts';
import { formatTook, resultOf, roleOfResult, tookMs } from './attempt-result.ts';
import styles from './timeline.module.css';
import { detailTexts } from './texts/detail-texts.ts';

type Props = Readonly<{
  bar: Bar;
  row: LogRow | undefined;
  isSelected: boolean;
  canFocus: boolean;
  onSelect: (id: string) => void;
}>;

const [barHeight, glyphSize] = [20, 12];
const roomForOrder = 44;
/** What the layout leaves beside an open bar, which grows until the saga is read again. */
const growthRoom = 40;

/** One attempt: its width is its time, its glyph its result, its number its place in the order. */
export function TimelineBar({ bar, row, isSelected, canFocus, onSelect }: Props) {
  const t = useText(detailTexts);
  const all = useText(sagasTexts);
  const [{ language }] = usePreferences();
  if (row === undefined) return null;
  const isUndo = row.action === 'COMPENSATE';
  const result = resultOf(row);
  const took = formatTook(tookMs(row), (ms) => formatDuration(ms, language));
  const what = isUndo ? all.undoOf(row.step_name) : row.step_name;
  const label = t.barLabel(bar.order, t.attemptOf(what, row.attempt), t[result], took);
  const y = bar.y + (laneHeight - barHeight) / 2;
  return (
    // A native radio cannot be part of a picture.
    // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role
    <g
      role="radio"
      aria-checked={isSelected}
      aria-label={label}
      tabIndex={canFocus ? 0 : -1}
      data-bar={bar.id}
      data-role={roleOfResult[result]}
      data-open={bar.isOpen || undefined}
      className={styles['bar']}
      onClick={() => onSelect(bar.id)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        onSelect(bar.id);
      }}
    >
      <title>{label}</title>
      {isUndo ? (
        <rect className={styles['hatch']} x={bar.x} y={y} width={bar.width} height={barHeight} rx={3} />
      ) : null}
      <rect
        className={styles['body']}
        style={{ '--grown': (bar.width + growthRoom) / bar.width } as CSSProperties}
        x={bar.x}
        y={y}
        width={bar.width}
        height={barHeight}
        rx={3}
      />
      <svg x={bar.x + 6} y={y + (barHeight - glyphSize) / 2} width={glyphSize} height={glyphSize}>
        <Glyph role={roleOfResult[result]} />
      </svg>
      {bar.width < roomForOrder ? null : (
        <text className={styles['order']} x={bar.x + 22} y={y + barHeight / 2 + 4}>
          {bar.order}
        </text>
      )}
    </g>
  );
}

/** The pattern of undos, so that they are told apart without colour. */
export function UndoHatch() {
  return (
    <defs>
      <pattern
        id="undo-hatch"
        width="6"
        height="6"
        patternUnits="userSpaceOnUse"
        patternTransform="rotate(45)"
      >
        <path d="M0 0v6" className={styles['hatchLine']} />
      </pattern>
    </defs>
  );
}
