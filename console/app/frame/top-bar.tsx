import { Menu } from 'lucide-react';
import { Button } from '../../components/button/button.tsx';
import { LiveIndicator } from '../../components/live/live-indicator.tsx';
import { useSession } from '../../components/session/session.tsx';
import { useText } from '../../components/text/use-text.ts';
import { appTexts } from '../texts/app-texts.ts';
import { Breadcrumb } from './breadcrumb.tsx';
import { EnvironmentBadge } from './environment-badge.tsx';
import { FindBox } from './find-box.tsx';
import { OperationsTray } from './operations-tray.tsx';
import { SettingsMenu } from './settings-menu.tsx';
import styles from './top-bar.module.css';

export function TopBar({ onOpenDrawer }: Readonly<{ onOpenDrawer: () => void }>) {
  const t = useText(appTexts);
  const { me } = useSession();
  return (
    <header className={styles['bar']}>
      <div className={styles['drawer']}>
        <Button kind="quiet" label={t.openNavigation} popup="dialog" onPress={onOpenDrawer}>
          <Menu size={16} aria-hidden />
        </Button>
      </div>
      <Breadcrumb />
      <EnvironmentBadge name={me.environment} />
      <div className={styles['tools']}>
        <FindBox />
        <OperationsTray />
        <LiveIndicator />
        <SettingsMenu />
      </div>
    </header>
  );
}
