import { useQuery } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { Button } from '../components/button/button.tsx';
import { useApi } from '../components/session/api-context.ts';
import { useLogout } from '../components/session/use-logout.ts';
import { SessionProvider } from '../components/session/session.tsx';
import { useText } from '../components/text/use-text.ts';
import { ApiFailure } from '../lib/api/api-failure.ts';
import { loginAddress } from '../lib/login-address.ts';
import type { PageFacts } from '../lib/page-facts.ts';
import type { Me } from '../lib/server-shapes.ts';
import styles from './session-gate.module.css';
import { appTexts } from './texts/app-texts.ts';

/** Shows the console to those whom the server knows; sends others to the login, if there is one. */
export function SessionGate({ facts, children }: Readonly<{ facts: PageFacts; children: ReactNode }>) {
  const api = useApi();
  const t = useText(appTexts);
  const [isLoggedOut, setLoggedOut] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: ['me'],
    queryFn: ({ signal }) => api.get<Me>('/api/v1/me', signal),
  });
  const isStranger = error instanceof ApiFailure && error.status === 401 && data === undefined;
  const isSentToLogin = isStranger && facts.login !== null;
  useEffect(() => {
    if (isSentToLogin) void leaveForLogin(facts);
  }, [isSentToLogin, facts]);
  if (isLoggedOut)
    return (
      <Notice title={t.loggedOut}>
        <a href={loginAddress(facts, { pathname: '/', search: '' })}>{t.login}</a>
      </Notice>
    );
  if (data !== undefined)
    return (
      <SessionProvider session={{ me: data, facts, onLogout: () => setLoggedOut(true) }}>
        {data.permissions.length === 0 ? <NoRole me={data} onRetry={() => void refetch()} /> : children}
      </SessionProvider>
    );
  if (error === null || isSentToLogin) return null;
  if (isStranger) return <Notice title={t.loginMissing}>{t.loginMissingHint}</Notice>;
  return (
    <Notice title={t.cannotStart}>
      <p>{error.message}</p>
      <Button onPress={() => void refetch()}>{t.tryAgain}</Button>
    </Notice>
  );
}

/**
 * One tab of the browser at a time: tabs that are restored together would else begin their logins in the same moment, in
 * the same cookie, and only one would come back. The lock ends with the page, when its cookie is set.
 */
async function leaveForLogin(facts: PageFacts): Promise<void> {
  const leave = (): void => location.assign(loginAddress(facts, location));
  if (!('locks' in navigator)) return leave();
  await navigator.locks.request('redrive login', async () => {
    leave();
    await new Promise((resolve) => setTimeout(resolve, leavingMs));
  });
}

/** A login page that does not answer holds up the other tabs no longer than this. */
const leavingMs = 5000;

/** A login alone allows nothing: says so once, in place of pages that are all refused. */
function NoRole({ me, onRetry }: Readonly<{ me: Me; onRetry: () => void }>) {
  const t = useText(appTexts);
  const { logout, failure } = useLogout();
  return (
    <Notice title={t.noRole}>
      <p>{t.noRoleHint(me.name)}</p>
      <p>
        <code>{me.subject}</code>
      </p>
      <Button onPress={onRetry}>{t.tryAgain}</Button>
      {logout === null ? null : <Button onPress={logout}>{t.logout}</Button>}
      {failure === null ? null : <p role="alert">{failure}</p>}
    </Notice>
  );
}

function Notice({ title, children }: Readonly<{ title: string; children: ReactNode }>) {
  useEffect(() => {
    document.title = `${title} · Redrive`;
  }, [title]);
  return (
    <main className={styles['gate']}>
      <h1>{title}</h1>
      {children}
    </main>
  );
}
