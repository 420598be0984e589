import { Autocomplete } from '@base-ui/react/autocomplete';
import { useLayoutEffect, useMemo, useRef, useState } from 'react';
import { completeFilter, type Completion, type ValueCounts } from '../../lib/filter/complete-filter.ts';
import type { Qualifiers } from '../../lib/filter/qualifiers.ts';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import type { InputProps } from './filter-box.tsx';
import styles from './filter.module.css';

type Props = InputProps &
  Readonly<{
    qualifiers: Qualifiers;
    counts: ValueCounts;
    /** Whether the input that stood here before had the focus. */
    takesFocus: () => boolean;
  }>;

/** The box with a list of what the term at the caret could become. */
export function CompletingInput(props: Props) {
  const { text, onText, qualifiers, counts, problemsId, takesFocus } = props;
  const input = useRef<HTMLInputElement>(null);
  const [isOpen, setOpen] = useState(false);
  const [caret, setCaret] = useState(text.length);
  const moveTo = useRef<number | null>(null);
  const items = useMemo(
    () => completeFilter(text, Math.min(caret, text.length), qualifiers, counts),
    [text, caret, qualifiers, counts],
  );
  useLayoutEffect(() => {
    if (moveTo.current !== null) input.current?.setSelectionRange(moveTo.current, moveTo.current);
    moveTo.current = null;
  });
  useLayoutEffect(() => {
    if (takesFocus()) input.current?.focus();
  }, [takesFocus]);
  const highlighted = useRef<Completion>(undefined);
  const readCaret = (): void => setCaret(input.current?.selectionStart ?? text.length);
  return (
    <Autocomplete.Root
      items={items}
      mode="none"
      value={text}
      open={isOpen && items.length > 0}
      onItemHighlighted={(item) => {
        highlighted.current = item;
      }}
      itemToStringValue={(item: Completion) => item.text}
      onOpenChange={(next, { reason }) => {
        if (reason !== 'item-press') setOpen(next);
      }}
      onValueChange={(next, { reason }) => {
        onText(next);
        if (reason === 'item-press') {
          const chosen = items.find((item) => item.text === next);
          moveTo.current = chosen?.caret ?? next.length;
          setOpen(chosen?.isQualifier ?? false);
        } else {
          readCaret();
          setOpen(true);
        }
      }}
    >
      <Autocomplete.Input
        ref={input}
        className={styles['input']}
        aria-label={props.label}
        aria-keyshortcuts="/"
        aria-describedby={problemsId}
        aria-invalid={problemsId !== undefined}
        placeholder={props.placeholder}
        spellCheck={false}
        autoComplete="off"
        onSelect={readCaret}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || highlighted.current !== undefined) return;
          setOpen(false);
          props.onEnter(text);
        }}
      />
      <Completions />
    </Autocomplete.Root>
  );
}

function Completions() {
  const t = useText(kitTexts);
  return (
    <Autocomplete.Portal>
      <Autocomplete.Positioner className={styles['positioner']} sideOffset={4} align="start">
        <Autocomplete.Popup className={styles['popup']} aria-label={t.completions}>
          <Autocomplete.List>
            {(item: Completion) => (
              <Autocomplete.Item key={item.text} value={item} className={styles['item']}>
                <span className={styles['itemLabel']}>{item.label}</span>
                {item.count === null ? null : (
                  <span className={styles['count']}>{t.occurrences(item.count)}</span>
                )}
              </Autocomplete.Item>
            )}
          </Autocomplete.List>
        </Autocomplete.Popup>
      </Autocomplete.Positioner>
    </Autocomplete.Portal>
  );
}
