import { Popover } from '@base-ui/react/popover';
import type { UseQueryResult } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Lock, Pencil, Trash2, Users } from 'lucide-react';
import type { RefObject } from 'react';
import { isMe } from '../../lib/is-me.ts';
import { loadedOf } from '../../lib/loaded.ts';
import { readLocalPlace } from '../../lib/view-address.ts';
import { Button } from '../button/button.tsx';
import { useSession } from '../session/session.tsx';
import { useMay } from '../session/use-may.ts';
import { LoadedPanel } from '../states/loaded-panel.tsx';
import { useText } from '../text/use-text.ts';
import { viewsTexts } from './texts/views-texts.ts';
import type { ViewActions } from './use-view-actions.ts';
import type { SavedView } from './use-views.ts';
import styles from './views.module.css';

type MenuProps = Readonly<{
  query: UseQueryResult<readonly SavedView[]>;
  isOfList: (view: SavedView) => boolean;
  /** The address of the page, to mark the view that is applied. */
  current: string;
  anchor: RefObject<HTMLButtonElement | null>;
  actions: ViewActions;
  onRename: (view: SavedView) => void;
  onClose: () => void;
}>;

/** Views of this list as links, the own ones first. */
export function ViewsMenu(props: MenuProps) {
  const { query, isOfList, anchor, onClose } = props;
  const t = useText(viewsTexts);
  const { me } = useSession();
  const loaded = loadedOf(query, (views) => (views.some(isOfList) ? null : 'nothing'));
  return (
    <Popover.Root
      open
      onOpenChange={(isOpen, { event }) => {
        // The button closes it by itself.
        const isButton = event.target instanceof Node && anchor.current?.contains(event.target) === true;
        if (!isOpen && !isButton) onClose();
      }}
    >
      <Popover.Portal>
        <Popover.Positioner anchor={anchor} align="start" sideOffset={4} className={styles['positioner']}>
          <Popover.Popup className={styles['popup']} aria-label={t.savedViews} finalFocus={anchor}>
            <LoadedPanel
              loaded={loaded}
              onRetry={() => void query.refetch()}
              skeletonRows={3}
              renderEmpty={() => (
                <p className={styles['none']}>
                  <strong>{t.noViews}</strong> {t.noViewsHint}
                </p>
              )}
            >
              {(views) => {
                const own = views.filter((view) => isOfList(view) && isMe(me, view.owner));
                const others = views.filter((view) => isOfList(view) && !isMe(me, view.owner));
                return (
                  <>
                    <Views {...props} title={t.own} views={own} isOwn />
                    <Views {...props} title={t.shared} views={others} isOwn={false} />
                  </>
                );
              }}
            </LoadedPanel>
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}

function Views(props: MenuProps & Readonly<{ title: string; views: readonly SavedView[]; isOwn: boolean }>) {
  const { title, views, isOwn } = props;
  if (views.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2 className={styles['heading']}>{title}</h2>
      <ul>
        {views.map((view) => (
          <li key={view.id} className={styles['view']}>
            <ViewLink view={view} current={props.current} isOwn={isOwn} onClose={props.onClose} />
            {isOwn ? <OwnActions {...props} view={view} /> : null}
          </li>
        ))}
      </ul>
    </section>
  );
}

function ViewLink(
  props: Readonly<{ view: SavedView; current: string; isOwn: boolean; onClose: () => void }>,
) {
  const { view, current, isOwn, onClose } = props;
  const t = useText(viewsTexts);
  const place = readLocalPlace(view.url);
  if (place === null) return null;
  const { q, ...rest } = place.search;
  const filter = [q ?? '', ...Object.entries(rest).map(([name, value]) => `${name}=${value}`)]
    .filter((part) => part !== '')
    .join(' ');
  return (
    <Link
      to={place.to}
      search={place.search}
      className={styles['link']}
      aria-current={view.url === current ? 'page' : undefined}
      onClick={onClose}
    >
      <span className={styles['name']}>
        {view.name}
        {isOwn ? null : <span className={styles['owner']}> {t.by(view.owner_name)}</span>}
      </span>
      <span className={styles['filter']}>{filter === '' ? t.wholeList : filter}</span>
    </Link>
  );
}

function OwnActions({ view, actions, onRename }: MenuProps & Readonly<{ view: SavedView }>) {
  const t = useText(viewsTexts);
  const may = useMay('console:views:share');
  const { name, shared } = view;
  return (
    <span className={styles['actions']}>
      <Button kind="quiet" label={t.rename(name)} onPress={() => onRename(view)}>
        <Pencil size={14} aria-hidden />
      </Button>
      <Button
        kind="quiet"
        label={shared ? t.unshareView(name) : t.shareView(name)}
        disabledReason={may.reason}
        onPress={() => void actions.share(view, !shared)}
      >
        {shared ? <Users size={14} aria-hidden /> : <Lock size={14} aria-hidden />}
      </Button>
      <Button kind="quiet" label={t.remove(name)} onPress={() => void actions.remove(view)}>
        <Trash2 size={14} aria-hidden />
      </Button>
    </span>
  );
}
