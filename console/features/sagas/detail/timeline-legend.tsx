import { Glyph } from '../../../components/status/glyph.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { roleOfResult, type Result } from './attempt-result.ts';
import styles from './timeline.module.css';
import { detailTexts } from './texts/detail-texts.ts';

/** The words of the marks that occur. */
export function TimelineLegend({ used, hasUndos }: Readonly<{ used: readonly Result[]; hasUndos: boolean }>) {
  const t = useText(detailTexts);
  if (used.length === 0) return null;
  return (
    <ul className={styles['legend']} aria-label={t.legend}>
      <li>
        <span className={styles['sample']} aria-hidden /> {t.forward}
      </li>
      {hasUndos ? (
        <li>
          <span className={styles['sample']} data-undo aria-hidden /> {t.undo}
        </li>
      ) : null}
      {used.map((result) => (
        <li key={result} data-role={roleOfResult[result]}>
          <Glyph role={roleOfResult[result]} /> {t[result]}
        </li>
      ))}
    </ul>
  );
}
