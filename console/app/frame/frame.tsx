import { Outlet } from '@tanstack/react-router';
import { Suspense, useRef } from 'react';
import { PageNameProvider } from '../../components/navigation/page-name.tsx';
import { PanelBoundary } from '../../components/navigation/panel-boundary.tsx';
import { usePreferences } from '../../components/preferences/preferences.tsx';
import { useSession } from '../../components/session/session.tsx';
import { useText } from '../../components/text/use-text.ts';
import { appTexts } from '../texts/app-texts.ts';
import { DocumentTitle } from './document-title.tsx';
import { isProduction } from '../../lib/page-facts.ts';
import styles from './frame.module.css';
import { LeftRail } from './left-rail.tsx';
import { RailDrawer } from './rail-drawer.tsx';
import { SessionEnded } from './session-ended.tsx';
import { TabBar } from './tab-bar.tsx';
import { TopBar } from './top-bar.tsx';
import { useGoKeys } from './use-go-keys.ts';

/** What stays on screen while pages change: rail, top bar, tabs. */
export function Frame() {
  const t = useText(appTexts);
  const { me } = useSession();
  const [{ rail }] = usePreferences();
  const drawer = useRef<HTMLDialogElement>(null);
  const content = useRef<HTMLElement>(null);
  useGoKeys();
  return (
    <PageNameProvider>
      <DocumentTitle />
      <div className={styles['frame']} data-rail={rail} data-production={isProduction(me.environment)}>
        <a
          className={styles['skip']}
          href="#content"
          onClick={(event) => {
            event.preventDefault();
            content.current?.focus();
          }}
        >
          {t.skipToContent}
        </a>
        <TopBar onOpenDrawer={() => drawer.current?.showModal()} />
        <aside className={styles['rail']}>
          <LeftRail />
        </aside>
        <RailDrawer ref={drawer} />
        <div className={styles['body']}>
          <SessionEnded />
          <TabBar />
          <main ref={content} id="content" className={styles['content']} tabIndex={-1}>
            <PanelBoundary name={t.thisPage}>
              <Suspense>
                <Outlet />
              </Suspense>
            </PanelBoundary>
          </main>
        </div>
      </div>
    </PageNameProvider>
  );
}
