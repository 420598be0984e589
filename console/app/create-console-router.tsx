import { createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router';
import { parseSearchParams, printSearchParams } from '../lib/search-params.ts';
import { features } from './features.ts';
import { Frame } from './frame/frame.tsx';
import { NotFound } from './not-found.tsx';

/** Routes of all features below one frame. */
export function createConsoleRouter(prefix: string) {
  const root = createRootRoute({ component: Frame, notFoundComponent: NotFound });
  const home = createRoute({
    getParentRoute: () => root,
    path: '/',
    beforeLoad: () => {
      throw redirect({ to: features[0]?.home ?? '/', replace: true });
    },
  });
  return createRouter({
    routeTree: root.addChildren([home, ...features.flatMap((feature) => feature.routes(root))]),
    basepath: prefix === '' ? '/' : prefix,
    parseSearch: parseSearchParams,
    stringifySearch: printSearchParams,
    defaultPreload: false,
    scrollRestoration: true,
  });
}
