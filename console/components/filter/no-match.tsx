import { parseFilter, printFilter, printTerm } from '../../lib/filter/filter.ts';
import { Button } from '../button/button.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { EmptyState } from '../states/panel-states.tsx';
import { useText } from '../text/use-text.ts';
import styles from './filter.module.css';

/** Nothing matches: shows the filter, with a button that removes each term. */
export function NoMatch({
  filter,
  onApply,
}: Readonly<{ filter: string; onApply: (filter: string) => void }>) {
  const t = useText(kitTexts);
  const terms = parseFilter(filter);
  return (
    <EmptyState title={t.noMatch}>
      <div className={styles['terms']}>
        {terms.map((term, i) => (
          <Button
            key={`${i} ${printTerm(term)}`}
            onPress={() => onApply(printFilter(terms.filter((_, j) => j !== i)))}
          >
            {t.removeTerm(printTerm(term))}
          </Button>
        ))}
      </div>
    </EmptyState>
  );
}
