import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { Timeline } from '../../../lib/timeline/timeline.ts';
import { formatAbsolute, formatDuration } from '../../../lib/times.ts';
import styles from './timeline.module.css';
import { detailTexts } from './texts/detail-texts.ts';

type Props = Readonly<{
  layout: Timeline;
  /** The height above the rows, in which the marks are named. */
  head: number;
  readAt: number;
}>;

/** Where nothing happened for a while, and where the saga turned back. */
export function TimelineMarks({ layout, head, readAt }: Props) {
  const t = useText(detailTexts);
  const [{ language, timeZone }] = usePreferences();
  const { pauses, turn, width: whole, height } = layout;
  return (
    <>
      {pauses.map(({ x, width, ms }) => (
        <g key={x} className={styles['pause']}>
          <title>{t.idle(formatDuration(ms, language))}</title>
          <path d={`M${x + width / 2 - 3} 0v${height}M${x + width / 2 + 3} 0v${height}`} />
          <text x={x + width / 2} y={-6} textAnchor="middle">
            {formatDuration(ms, language)}
          </text>
        </g>
      ))}
      {turn === null ? null : (
        <g className={styles['turn']}>
          <path d={`M${turn.x} ${8 - head}V${height}`} />
          <path className={styles['diamond']} d={`M${turn.x} ${2 - head}l6 6 -6 6 -6 -6z`} />
          <text {...onFreeSide(turn.x, whole)} y={12 - head}>
            {t.turnedBack} {formatAbsolute(turn.at, readAt, timeZone)}
          </text>
        </g>
      )}
    </>
  );
}

/** On the side on which there is room. */
function onFreeSide(x: number, width: number): Readonly<{ x: number; textAnchor: 'start' | 'end' }> {
  return x > width / 2 ? { x: x - 10, textAnchor: 'end' } : { x: x + 10, textAnchor: 'start' };
}
