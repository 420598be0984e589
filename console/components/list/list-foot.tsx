import { Button } from '../button/button.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import styles from './list.module.css';

const rowsPerStep = 100;
const maxRows = 500;

export type MoreRows = Readonly<{
  /** Whether the server has more. */
  hasMore: boolean;
  isLoading: boolean;
  onLoad: () => void;
  /** How many match; null if not known, negative if estimated. */
  total: number | null;
}>;

export function ListFoot({ more, shown }: Readonly<{ more: MoreRows; shown: number }>) {
  const t = useText(kitTexts);
  return (
    <div className={styles['foot']}>
      <span role="status">{t.shownOf(shown, more.total)}</span>
      {more.hasMore && shown < maxRows ? (
        <Button isBusy={more.isLoading} onPress={more.onLoad}>
          {t.loadMore(rowsPerStep)}
        </Button>
      ) : null}
      {more.hasMore && shown >= maxRows ? <span>{t.limitReached(maxRows)}</span> : null}
    </div>
  );
}
