import { countSelected, nothingSelected, shownState } from '../../lib/selection/selection.ts';
import { Button } from '../button/button.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import type { ListTableProps } from './list-table.tsx';
import styles from './list.module.css';

/** What is selected, the way to select all that match, and what can be done with it. */
export function SelectionBar(
  props: Readonly<{
    selection: NonNullable<ListTableProps<never>['selection']>;
    ids: readonly string[];
  }>,
) {
  const { selection, ids } = props;
  const { value, onChange, matching } = selection;
  const t = useText(kitTexts);
  if (value.kind === 'none') return <div role="status" className="visually-hidden" />;
  const isAllShown = shownState(value, ids) === 'all';
  const total = matching?.total ?? null;
  const hasMore = matching !== undefined && (total === null || Math.abs(total) > ids.length);
  return (
    <div className={styles['selectionBar']}>
      <span role="status">
        {value.kind === 'allMatching'
          ? value.minus.size === 0
            ? t.matchingSelected(total)
            : t.someSelected(countSelected(value, total) ?? 0)
          : isAllShown && hasMore
            ? t.shownSelected(ids.length)
            : t.someSelected(countSelected(value, total) ?? 0)}
      </span>
      {value.kind === 'some' && isAllShown && hasMore ? (
        <Button keys="A" onPress={() => onChange(matching.select())}>
          {t.selectMatching(total)}
        </Button>
      ) : null}
      {selection.actions}
      <Button kind="quiet" keys="Escape" onPress={() => onChange(nothingSelected)}>
        {t.clearSelection}
      </Button>
    </div>
  );
}
