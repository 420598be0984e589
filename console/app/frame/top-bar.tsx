import { useSession } from '../../components/session/session.tsx';
import { useText } from '../../components/text/use-text.ts';
import { appTexts } from '../texts/app-texts.ts';
import styles from './top-bar.module.css';

export function TopBar() {
  const t = useText(appTexts);
  const { me } = useSession();
  return (
    <header className={styles['bar']}>
      <span className={styles['name']}>Redrive</span>
      <span className={styles['environment']} data-environment={me.environment}>
        <span className="visually-hidden">{t.environment(me.environment)}</span>
        <span aria-hidden>{me.environment}</span>
      </span>
      <span className={styles['user']}>{me.name}</span>
    </header>
  );
}
