import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { Suspense, useMemo } from 'react';
import { LiveProvider } from '../components/live/live-provider.tsx';
import { PreferencesProvider } from '../components/preferences/preferences.tsx';
import { ToastsProvider } from '../components/toast/toasts.tsx';
import { ApiProvider } from '../components/session/session-end.tsx';
import { ApiFailure } from '../lib/api/api-failure.ts';
import type { PageFacts } from '../lib/page-facts.ts';
import { createConsoleRouter } from './create-console-router.tsx';
import { SessionGate } from './session-gate.tsx';

const maxRetries = 2;

export function App({ facts }: Readonly<{ facts: PageFacts }>) {
  const { queries, router } = useMemo(
    () => ({ queries: createQueries(), router: createConsoleRouter(facts.prefix) }),
    [facts],
  );
  return (
    <PreferencesProvider>
      <Suspense>
        <QueryClientProvider client={queries}>
          <ApiProvider prefix={facts.prefix}>
            <SessionGate facts={facts}>
              <ToastsProvider>
                <LiveProvider>
                  <RouterProvider router={router} />
                </LiveProvider>
              </ToastsProvider>
            </SessionGate>
          </ApiProvider>
        </QueryClientProvider>
      </Suspense>
    </PreferencesProvider>
  );
}

/** The events of the server say when data is old, so focus and mounting do not fetch it again. */
function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 60_000,
        refetchOnWindowFocus: false,
        retry: (count, error) => count < maxRetries && isWorthARetry(error),
      },
    },
  });
}

function isWorthARetry(error: unknown): boolean {
  return error instanceof ApiFailure && (error.status === 0 || error.status === 503);
}
