import { useState, type RefObject } from 'react';
import { isViewOf } from '../../lib/view-address.ts';
import { ConfirmDialog } from '../dialog/confirm-dialog.tsx';
import type { Confirmation, ConfirmationField } from '../dialog/confirmation.ts';
import { useMay } from '../session/use-may.ts';
import { useText } from '../text/use-text.ts';
import { viewsTexts } from './texts/views-texts.ts';
import { useViewActions } from './use-view-actions.ts';
import { useViews, type SavedView } from './use-views.ts';
import { ViewsMenu } from './views-menu.tsx';
import styles from './views.module.css';

const maxName = 100;
/** Longer ones the server refuses. */
const maxAddress = 2000;

type Props = Readonly<{
  asked: 'menu' | 'save';
  anchor: RefObject<HTMLButtonElement | null>;
  pathname: string;
  /** What would be saved. */
  url: string;
  onEnd: () => void;
}>;

/** Loaded when it is asked for. */
export function ViewsPanel({ asked, anchor, pathname, url, onEnd }: Props) {
  const query = useViews();
  const [renamed, setRenamed] = useState<SavedView | null>(null);
  const actions = useViewActions();
  const save = useSaving(url, query.data, actions.save);
  const rename = useRenaming(renamed, actions.rename);
  if (asked === 'save') return <ConfirmDialog confirmation={save} onEnd={onEnd} />;
  if (rename !== null) return <ConfirmDialog confirmation={rename} onEnd={onEnd} />;
  return (
    <ViewsMenu
      query={query}
      isOfList={({ url: other }) => isViewOf(other, pathname)}
      current={url}
      anchor={anchor}
      actions={actions}
      onRename={setRenamed}
      onClose={onEnd}
    />
  );
}

function useSaving(
  url: string,
  views: readonly SavedView[] | undefined,
  save: ReturnType<typeof useViewActions>['save'],
): Confirmation {
  const t = useText(viewsTexts);
  const may = useMay('console:views:share');
  const same = views?.find((view) => view.url === url);
  return {
    title: t.saveTitle,
    action: t.saveAction,
    startsInField: true,
    consequence: (
      <>
        <p>{t.saves}</p>
        <code className={styles['address']}>{url}</code>
        {same === undefined ? null : <p>{t.alreadySaved(same.name)}</p>}
      </>
    ),
    fields: [
      nameField(t.name),
      {
        name: 'shared',
        kind: 'check',
        label: t.share,
        disabledReason: may.reason === undefined ? undefined : `${t.shareRefused} ${may.reason}`,
      },
    ],
    async perform({ name = '', shared }) {
      if (url.length > maxAddress) throw new Error(t.tooLong(url.length, maxAddress));
      await save({ name: name.trim(), url, shared: shared === 'true' });
    },
  };
}

function useRenaming(
  view: SavedView | null,
  rename: ReturnType<typeof useViewActions>['rename'],
): Confirmation | null {
  const t = useText(viewsTexts);
  if (view === null) return null;
  return {
    title: t.renameTitle,
    action: t.renameAction,
    startsInField: true,
    consequence: <code className={styles['address']}>{view.url}</code>,
    fields: [{ ...nameField(t.name), initial: view.name }],
    perform: ({ name = '' }) => rename(view, name.trim()),
  };
}

function nameField(label: string): ConfirmationField {
  return { name: 'name', label, kind: 'line', isRequired: true, maxLength: maxName };
}
