import {
  createMemoryHistory,
  createRootRoute,
  createRoute,
  createRouter,
  RouterProvider,
} from '@tanstack/react-router';
import { act, cleanup, configure, render } from '@testing-library/react';
import { Suspense, useSyncExternalStore, type ReactNode } from 'react';
import { afterEach } from 'vitest';

/** For tests: draws a component as a page with a router, so that links work. `redraw` gives it other content. */
export async function renderInPage(content: ReactNode) {
  let shown = content;
  const listeners = new Set<() => void>();
  const Page = () => {
    const now = useSyncExternalStore(
      (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      () => shown,
    );
    return <Suspense>{now}</Suspense>;
  };
  const root = createRootRoute();
  const page = createRoute({ getParentRoute: () => root, path: '$', component: Page });
  const history = createMemoryHistory({ initialEntries: ['/'] });
  const router = createRouter({ routeTree: root.addChildren([page]), history, defaultPendingMinMs: 0 });
  await act(async () => {
    render(<RouterProvider router={router} />);
    await router.load();
  });
  return {
    history,
    redraw: (next: ReactNode) =>
      act(async () => {
        shown = next;
        for (const tell of listeners) tell();
      }),
  };
}

/** Call it once per file. Parts that are loaded on first use may take a while on a busy machine. */
export function cleanUpAfterEach(): void {
  configure({ asyncUtilTimeout: 30_000 });
  afterEach(cleanup);
}
