import { useQuery } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { Button } from '../components/button/button.tsx';
import { useApi } from '../components/session/api-context.ts';
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
    if (isSentToLogin) location.assign(loginAddress(facts, location));
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
        {children}
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
