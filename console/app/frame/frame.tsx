import { Outlet } from '@tanstack/react-router';
import { useText } from '../../components/text/use-text.ts';
import { appTexts } from '../texts/app-texts.ts';
import styles from './frame.module.css';
import { LeftRail } from './left-rail.tsx';
import { TopBar } from './top-bar.tsx';

export function Frame() {
  const t = useText(appTexts);
  return (
    <div className={styles['frame']}>
      <a className={styles['skip']} href="#content">
        {t.skipToContent}
      </a>
      <TopBar />
      <LeftRail />
      <main id="content" className={styles['content']} tabIndex={-1}>
        <Outlet />
      </main>
    </div>
  );
}
