import { kitTexts } from '../../../components/kit-texts/kit-texts.ts';
import { useText } from '../../../components/text/use-text.ts';
import { formatCount } from '../../../lib/sizes.ts';
import styles from './groups.module.css';
import { groupsTexts } from './texts/groups-texts.ts';

/** Failures per hour of the last day, as large bars. */
export function GroupTrend({ trend }: Readonly<{ trend: readonly number[] }>) {
  const t = useText(groupsTexts);
  const kit = useText(kitTexts);
  const peak = Math.max(1, ...trend);
  const sum = trend.reduce((all, one) => all + one, 0);
  return (
    <figure className={styles['trend']}>
      <figcaption>
        {t.lastDay}: {kit.lastHours(sum, Math.max(0, ...trend))}
      </figcaption>
      <div className={styles['hours']} aria-hidden>
        {trend.map((count, i) => (
          <span
            key={i}
            title={`${t.hourAgo(trend.length - 1 - i)}: ${formatCount(count)}`}
            data-empty={count === 0 || undefined}
            style={{ height: `${Math.max(2, (count / peak) * 100)}%` }}
          />
        ))}
      </div>
    </figure>
  );
}
