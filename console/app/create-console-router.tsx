import { createRootRoute, createRouter, type ErrorComponentProps } from '@tanstack/react-router';
import { PanelError } from '../components/navigation/panel-boundary.tsx';
import { redirectRoute } from '../components/navigation/routes.ts';
import { useText } from '../components/text/use-text.ts';
import { parseSearchParams, printSearchParams } from '../lib/search-params.ts';
import { features } from './features.ts';
import { Frame } from './frame/frame.tsx';
import { NotFound } from './not-found.tsx';
import { appTexts } from './texts/app-texts.ts';

/** Routes of all features below one frame. */
export function createConsoleRouter(prefix: string) {
  const root = createRootRoute({ component: Frame, notFoundComponent: NotFound });
  const home = redirectRoute(root, '/', features[0]?.home ?? '/');
  return createRouter({
    routeTree: root.addChildren([home, ...features.flatMap((feature) => feature.routes(root))]),
    basepath: prefix === '' ? '/' : prefix,
    parseSearch: parseSearchParams,
    stringifySearch: printSearchParams,
    defaultPreload: false,
    defaultErrorComponent: PageError,
    scrollRestoration: true,
    scrollToTopSelectors: ['#content'],
  });
}

function PageError({ error, reset }: ErrorComponentProps) {
  const t = useText(appTexts);
  return <PanelError name={t.thisPage} error={error} onRetry={reset} />;
}
