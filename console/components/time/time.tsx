import { useContext, useSyncExternalStore } from 'react';
import { formatAbsolute, formatDuration, formatIso } from '../../lib/times.ts';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { usePreferences } from '../preferences/preferences.tsx';
import { useText } from '../text/use-text.ts';
import { ClockContext } from './clock.ts';
import styles from './time.module.css';

export type TimeProps = Readonly<{
  at: string | null;
  /** `both`: age and clock time; in compact lists only the age is shown. */
  show?: 'both' | 'age' | 'absolute';
}>;

/** A point in time as its age and on the clock; hovering shows all of it. */
export function Time({ at, show = 'both' }: TimeProps) {
  const [{ language, timeZone }] = usePreferences();
  const t = useText(kitTexts);
  const clock = useContext(ClockContext);
  const ms = at === null ? Number.NaN : Date.parse(at);
  // As a text, so that the component is drawn again only when its text changes.
  const shown = useSyncExternalStore(clock.subscribe, () => {
    if (Number.isNaN(ms)) return '';
    const now = clock.now();
    const age = formatDuration(Math.abs(now - ms), language);
    return `${now + 1000 < ms ? t.in(age) : age}|${formatAbsolute(ms, now, timeZone)}`;
  });
  if (shown === '') return <span aria-hidden>–</span>;
  const [age, absolute] = shown.split('|');
  return (
    <time dateTime={new Date(ms).toISOString()} title={formatIso(ms, timeZone)} className={styles['time']}>
      {show === 'absolute' ? null : <span>{age}</span>}
      {show === 'both' ? (
        <span aria-hidden className={styles['dot']}>
          {' · '}
        </span>
      ) : null}
      {show === 'age' ? null : <span className={show === 'both' ? styles['absolute'] : ''}>{absolute}</span>}
    </time>
  );
}
