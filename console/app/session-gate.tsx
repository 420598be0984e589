import { useQuery } from '@tanstack/react-query';
import { useEffect, type ReactNode } from 'react';
import { useApi } from '../components/session/api-context.ts';
import { SessionProvider } from '../components/session/session.tsx';
import { useText } from '../components/text/use-text.ts';
import type { Me } from '../lib/server-shapes.ts';
import { ApiFailure } from '../lib/api/api-failure.ts';
import type { PageFacts } from '../lib/page-facts.ts';
import styles from './session-gate.module.css';
import { appTexts } from './texts/app-texts.ts';

/** Shows the console to those whom the server knows; sends others to the login, if there is one. */
export function SessionGate({ facts, children }: Readonly<{ facts: PageFacts; children: ReactNode }>) {
  const api = useApi();
  const t = useText(appTexts);
  const { data, error, refetch } = useQuery({
    queryKey: ['me'],
    queryFn: ({ signal }) => api.get<Me>('/api/v1/me', signal),
  });
  const isStranger = error instanceof ApiFailure && error.status === 401;
  const login = isStranger ? facts.login : null;
  useEffect(() => {
    if (login === null) return;
    const here = location.pathname.slice(facts.prefix.length) + location.search;
    location.assign(`${login}?return_to=${encodeURIComponent(here)}`);
  }, [login, facts.prefix]);
  if (data !== undefined) return <SessionProvider session={{ me: data, facts }}>{children}</SessionProvider>;
  if (error === null || login !== null) return null;
  return (
    <main className={styles['gate']}>
      <h1>{isStranger ? t.loginMissing : t.cannotStart}</h1>
      <p>{isStranger ? t.loginMissingHint : error.message}</p>
      {isStranger ? null : (
        <button type="button" onClick={() => void refetch()}>
          {t.tryAgain}
        </button>
      )}
    </main>
  );
}
