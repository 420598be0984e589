import { useContext, useSyncExternalStore } from 'react';
import { indicatorOf, type Indicator } from '../../lib/live/indicator.ts';
import { formatDuration } from '../../lib/times.ts';
import { usePageKeys } from '../navigation/use-page-keys.ts';
import { usePreferences } from '../preferences/preferences.tsx';
import { useText } from '../text/use-text.ts';
import { ClockContext } from '../time/clock.ts';
import styles from './live.module.css';
import { useLiveState, useLiveStore } from './live-context.ts';
import { liveTexts } from './texts/live-texts.ts';

const glyphs = {
  live: '●',
  connecting: '○',
  reconnecting: '◐',
  held: '‖',
  paused: '‖',
  polling: '○',
  stale: '▲',
} as const;

/** Whether what is on screen is up to date, since when, and if not, why. Pressed, it pauses updates. */
export function LiveIndicator() {
  const t = useText(liveTexts);
  const store = useLiveStore();
  const connection = useLiveState((state) => state.connection);
  const isPaused = useLiveState((state) => state.isPaused);
  const hold = useLiveState((state) => state.hold);
  const { text: age, ms: ageMs } = useAge();
  const indicator = indicatorOf({ connection, isPaused, hold, ageMs });
  const label = labelOf(indicator, t);
  const press = (): void => store.pause(!store.state().isPaused);
  usePageKeys({ '.': press });
  return (
    <>
      <button
        type="button"
        className={styles['indicator']}
        data-live={indicator.state}
        aria-pressed={isPaused}
        aria-keyshortcuts="."
        title={`${t[`${indicator.state}Hint`]}${age === '' ? '' : ` ${t.age(age)}`}`}
        onClick={press}
      >
        <span aria-hidden className={styles['glyph']}>
          {glyphs[indicator.state]}
        </span>
        <span className={styles['label']}>{label}</span>
        {age === '' ? null : <span className={styles['age']}>· {age}</span>}
        <span className="visually-hidden">. {isPaused ? t.resume : t.pause}</span>
      </button>
      <span role="status" className="visually-hidden">
        {indicator.state === 'live' || indicator.state === 'connecting' ? '' : label}
      </span>
    </>
  );
}

function labelOf(indicator: Indicator, t: ReturnType<typeof useText<typeof liveTexts.en>>): string {
  if (indicator.state !== 'held') return t[indicator.state];
  const { hold } = indicator;
  switch (hold.by) {
    case 'selection':
      return t.heldSelection(hold.count);
    case 'dialog':
      return t.heldDialog;
    case 'edit':
      return t.heldEdit;
    case 'text':
      return t.heldText;
  }
}

/** How long ago the server was heard, once a second. */
function useAge(): Readonly<{ text: string; ms: number | null }> {
  const clock = useContext(ClockContext);
  const store = useLiveStore();
  const [{ language }] = usePreferences();
  const seconds = useSyncExternalStore(clock.subscribe, () => {
    const heardAt = store.heardAt();
    return heardAt === null ? null : Math.max(0, Math.round((clock.now() - heardAt) / 1000));
  });
  return seconds === null
    ? { text: '', ms: null }
    : { text: formatDuration(seconds * 1000, language), ms: seconds * 1000 };
}
