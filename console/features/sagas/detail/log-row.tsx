import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { Glyph } from '../../../components/status/glyph.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { formatDuration } from '../../../lib/times.ts';
import type { LogRow } from '../use-saga.ts';
import { formatTook, resultOf, roleOfResult, tookMs } from './attempt-result.ts';
import styles from './detail.module.css';
import { detailTexts } from './texts/detail-texts.ts';

type Props = Readonly<{
  row: LogRow;
  isSelected: boolean;
  onSelect: (id: string) => void;
}>;

export function LogTableRow({ row, isSelected, onSelect }: Props) {
  const t = useText(detailTexts);
  const [{ language }] = usePreferences();
  const result = resultOf(row);
  const { error_message: error, actor, reason } = row;
  return (
    <tr data-selected={isSelected || undefined} aria-rowindex={row.order + 1}>
      <td data-number>{row.order}</td>
      <td>
        <button type="button" className={styles['rowButton']} onClick={() => onSelect(row.id)}>
          {row.step_name}
        </button>
      </td>
      <td>{row.action === 'COMPENSATE' ? t.undo : t.forward}</td>
      <td data-number>{row.attempt}</td>
      <td>
        <span className={styles['result']} data-role={roleOfResult[result]}>
          <Glyph role={roleOfResult[result]} /> {t[result]}
        </span>
      </td>
      <td>
        <Time at={row.started_at} />
      </td>
      <td data-number>{formatTook(tookMs(row), (ms) => formatDuration(ms, language))}</td>
      <td className={styles['why']}>
        {error === null ? null : <MaskedText text={error} />}
        {actor === undefined ? null : <div>{t.by(actor, reason ?? '')}</div>}
      </td>
    </tr>
  );
}

/** Of both tables, so that they have the same columns. */
export function LogHead() {
  const t = useText(detailTexts);
  const titles = [
    { title: t.order, isNumber: true },
    { title: t.step },
    { title: t.action },
    { title: t.attempt, isNumber: true },
    { title: t.result },
    { title: t.startedAt },
    { title: t.took, isNumber: true },
    { title: t.why },
  ];
  return (
    <thead>
      <tr aria-rowindex={1}>
        {titles.map(({ title, isNumber }) => (
          <th key={title} scope="col" data-number={isNumber}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  );
}
