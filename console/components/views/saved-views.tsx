import { useLocation } from '@tanstack/react-router';
import { Bookmark } from 'lucide-react';
import { lazy, Suspense, useRef, useState } from 'react';
import { viewAddress } from '../../lib/view-address.ts';
import { Button } from '../button/button.tsx';
import { useText } from '../text/use-text.ts';
import { viewsTexts } from './texts/views-texts.ts';

const ViewsPanel = lazy(async () => ({ default: (await import('./views-panel.tsx')).ViewsPanel }));

/** Saved views of the list on the page: a menu that applies one, and a dialog that saves what is applied. */
export function SavedViews() {
  const t = useText(viewsTexts);
  const { pathname, search } = useLocation();
  const [asked, setAsked] = useState<'menu' | 'save' | null>(null);
  const button = useRef<HTMLButtonElement>(null);
  const url = viewAddress(pathname, search);
  return (
    <>
      <Button
        ref={button}
        popup="dialog"
        expanded={asked === 'menu'}
        onPress={() => setAsked(asked === 'menu' ? null : 'menu')}
      >
        <Bookmark size={14} aria-hidden /> {t.views}
      </Button>
      {url === pathname ? null : (
        <Button popup="dialog" onPress={() => setAsked('save')}>
          {t.saveView}
        </Button>
      )}
      {asked === null ? null : (
        <Suspense>
          <ViewsPanel
            asked={asked}
            anchor={button}
            pathname={pathname}
            url={url}
            onEnd={() => setAsked(null)}
          />
        </Suspense>
      )}
    </>
  );
}
