import { withTerm } from '../../lib/filter/complete-filter.ts';
import { parseFilter, printFilter } from '../../lib/filter/filter.ts';
import { formatCount } from '../../lib/sizes.ts';
import { Glyph } from '../status/glyph.tsx';
import { roleOf } from '../../lib/status/status-roles.ts';
import styles from './filter.module.css';

type Props = Readonly<{
  label: string;
  /** The qualifier that a press sets, or takes away again. */
  qualifier: string;
  counts: readonly Readonly<{ value: string; count: number }>[];
  isEstimate: boolean;
  /** The list takes one of them only. */
  isSingle?: boolean;
  filter: string;
  onApply: (filter: string) => void;
}>;

/** Statuses with their counts; pressing one filters by it. */
export function StatusFacets(props: Props) {
  const { label, qualifier, counts, isEstimate, isSingle = false, filter, onApply } = props;
  const terms = parseFilter(filter);
  const chosen =
    terms.find((term) => term.qualifier === qualifier && !term.isExcluded)?.value.split(',') ?? [];
  return (
    <div role="group" aria-label={label} className={styles['facets']}>
      {counts.map(({ value, count }) => {
        const isChosen = chosen.includes(value);
        const others = isSingle ? [] : chosen.filter((other) => other !== value);
        const next = isChosen ? others : [...others, value];
        return (
          <button
            key={value}
            type="button"
            className={styles['facet']}
            aria-pressed={isChosen}
            onClick={() => onApply(printFilter(withTerm(terms, qualifier, next.join(','))))}
          >
            <Glyph role={roleOf(value)} /> {value}{' '}
            <span className={styles['count']}>
              {isEstimate ? '~' : ''}
              {formatCount(count)}
            </span>
          </button>
        );
      })}
    </div>
  );
}
