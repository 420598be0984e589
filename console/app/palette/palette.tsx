import { Autocomplete } from '@base-ui/react/autocomplete';
import { Dialog } from '@base-ui/react/dialog';
import { useNavigate } from '@tanstack/react-router';
import { useId, useMemo, useRef, useState } from 'react';
import { KeyHint } from '../../components/button/key-hint.tsx';
import { useHold } from '../../components/live/use-hold.ts';
import { useSession } from '../../components/session/session.tsx';
import { StatusBadge } from '../../components/status/status-badge.tsx';
import { useText } from '../../components/text/use-text.ts';
import { groupsOf, type Entry, type Group } from './entries.ts';
import { findPageActions } from './page-actions.ts';
import styles from './palette.module.css';
import { keepRecent, readRecent } from './recent-items.ts';
import { paletteTexts } from './texts/palette-texts.ts';
import { useFind } from './use-find.ts';
import { usePages } from './use-pages.ts';

type Props = Readonly<{
  /** What had the focus, and gets it back. */
  opener: HTMLElement | null;
  /** Closes it; `press` is a button of the page to be pressed afterwards. */
  onEnd: (press: HTMLElement | null) => void;
}>;

/** Finds what somebody has pasted, does what the page can do, and goes to any page. */
export function Palette({ opener, onEnd }: Props) {
  useHold('dialog');
  const t = useText(paletteTexts);
  const hintId = useId();
  const [text, setText] = useState('');
  const input = useRef<HTMLInputElement>(null);
  const finalFocus = useRef(opener);
  const { groups, find, run } = useEntries(text, opener, (press) => {
    if (press !== null) finalFocus.current = press;
    onEnd(press);
  });
  return (
    <Dialog.Root open onOpenChange={(isOpen) => (isOpen ? undefined : onEnd(null))}>
      <Dialog.Portal>
        <Dialog.Backdrop className={styles['backdrop']} />
        <Dialog.Popup
          className={styles['popup']}
          aria-label={t.title}
          initialFocus={input}
          finalFocus={finalFocus}
          onKeyDown={(event) => event.stopPropagation()}
        >
          <Autocomplete.Root
            open
            inline
            items={groups}
            mode="none"
            value={text}
            autoHighlight="always"
            keepHighlight
            itemToStringValue={(entry: Entry) => entry.label}
            onValueChange={(next, { reason }) => {
              if (reason !== 'item-press') setText(next);
            }}
          >
            <Autocomplete.Input
              ref={input}
              className={styles['input']}
              aria-label={t.title}
              aria-describedby={hintId}
              placeholder={t.placeholder}
              spellCheck={false}
              autoComplete="off"
            />
            <span id={hintId} hidden>
              {t.hint}
            </span>
            <Notices find={find} count={groups.reduce((sum, { items }) => sum + items.length, 0)} />
            <Autocomplete.List className={styles['list']}>
              {(group: Group) => (
                <Autocomplete.Group key={group.value} items={group.items} className={styles['group']}>
                  <Autocomplete.GroupLabel className={styles['label']}>{group.value}</Autocomplete.GroupLabel>
                  <Autocomplete.Collection>
                    {(entry: Entry) => <Line key={entry.id} entry={entry} onRun={() => run(entry)} />}
                  </Autocomplete.Collection>
                </Autocomplete.Group>
              )}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function useEntries(text: string, opener: HTMLElement | null, onEnd: Props['onEnd']) {
  const t = useText(paletteTexts);
  const navigate = useNavigate();
  const { subject } = useSession().me;
  const find = useFind(text);
  const pages = usePages();
  // As the page was when this opened: nothing behind it changes meanwhile.
  const [actions] = useState(() =>
    findPageActions(document.getElementById('content') ?? document.body, opener),
  );
  const [recent] = useState(() => readRecent(subject));
  const groups = useMemo(
    () => groupsOf(text, { found: find.items, actions, pages, recent }, t),
    [text, find.items, actions, pages, recent, t],
  );
  const run = ({ does, disabledReason, label, detail }: Entry): void => {
    if (disabledReason !== null) return;
    if (does.kind === 'press') {
      onEnd(does.element);
      return;
    }
    keepRecent(subject, { to: does.to, label, detail });
    onEnd(null);
    void navigate({ to: does.to });
  };
  return { groups, find, run };
}

function Line({ entry, onRun }: Readonly<{ entry: Entry; onRun: () => void }>) {
  const { label, detail, status, keys, disabledReason } = entry;
  return (
    <Autocomplete.Item
      value={entry}
      className={styles['item']}
      aria-disabled={disabledReason !== null || undefined}
      onClick={onRun}
    >
      <span className={styles['what']}>
        <span className={styles['name']}>{label}</span>
        {detail === '' ? null : <span className={styles['detail']}>{detail}</span>}
      </span>
      {status === null ? null : <StatusBadge status={status} />}
      {keys === null ? null : <KeyHint keys={keys} />}
    </Autocomplete.Item>
  );
}

/** How the search goes: a failure is never an empty result. */
function Notices({ find, count }: Readonly<{ find: ReturnType<typeof useFind>; count: number }>) {
  const t = useText(paletteTexts);
  const { isSearching, error, unavailable } = find;
  const names: Readonly<Record<string, string>> = {
    dlq: t.dlq,
    outbox: t.outbox,
    jobs: t.jobs,
    saga: t.saga,
  };
  const isEmpty = count === 0 && error === null && unavailable.length === 0;
  return (
    <>
      <p role="status" className={styles['notice']}>
        {isSearching ? t.searching : isEmpty ? t.nothing : t.resultsOf(count)}
      </p>
      {error === null ? null : (
        <p role="alert" className={styles['trouble']}>
          {t.failed(error.message)}
        </p>
      )}
      {unavailable.length === 0 ? null : (
        <p role="alert" className={styles['trouble']}>
          {t.unavailable(unavailable.map((slice) => names[slice] ?? slice).join(', '))}
        </p>
      )}
    </>
  );
}
