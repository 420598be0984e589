import { useSession } from '../../components/session/session.tsx';
import { useSessionEnd } from '../../components/session/session-end.tsx';
import { useText } from '../../components/text/use-text.ts';
import { loginAddress } from '../../lib/login-address.ts';
import { appTexts } from '../texts/app-texts.ts';
import styles from './session-ended.module.css';

/**
 * Shown when the server stops knowing the user, for example after half an hour without a request. The page stays: an
 * edit that is not saved is not lost, and a login in another tab continues this one.
 */
export function SessionEnded() {
  const t = useText(appTexts);
  const { facts } = useSession();
  const { hasEnded } = useSessionEnd();
  if (!hasEnded) return null;
  return (
    <div role="alert" className={styles['ended']}>
      <strong>{t.sessionEnded}</strong> <span>{t.sessionEndedHint}</span>{' '}
      {facts.login === null ? null : (
        <a href={loginAddress(facts, location)} target="_blank" rel="opener">
          {t.loginAgain}
        </a>
      )}
    </div>
  );
}
