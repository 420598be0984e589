import { Button } from '../../../components/button/button.tsx';
import { kitTexts } from '../../../components/kit-texts/kit-texts.ts';
import { useText } from '../../../components/text/use-text.ts';
import type { InboxAnswer, InboxSlice } from '../inbox-entry.ts';
import styles from '../inbox.module.css';
import { inboxTexts } from '../texts/inbox-texts.ts';

/** Says which slices are not in the list, or not all of them: what is missing may need attention. */
export function MissingParts({
  facts,
  onRetry,
}: Readonly<{ facts: Pick<InboxAnswer, 'unavailable' | 'partial'> | undefined; onRetry: () => void }>) {
  const t = useText(inboxTexts);
  const kit = useText(kitTexts);
  const { unavailable = [], partial = [] } = facts ?? {};
  const namesOf = (some: readonly InboxSlice[]): string => some.map((slice) => t[`${slice}Slice`]).join(', ');
  return (
    <>
      {unavailable.length === 0 ? null : (
        <div role="alert" className={styles['missing']}>
          <p>
            <strong>{t.missingParts}</strong> {t.missingSlices(namesOf(unavailable))}
          </p>
          <Button onPress={onRetry}>{kit.retry}</Button>
        </div>
      )}
      {partial.length === 0 ? null : (
        <p role="note" className={styles['partial']}>
          {t.partialSlices(namesOf(partial))}
        </p>
      )}
    </>
  );
}
