import { createRoute, lazyRouteComponent, redirect, type AnyRoute } from '@tanstack/react-router';
import type { ComponentType } from 'react';

/** A route whose page is loaded when it is first opened. */
export function lazyPage<Module extends Readonly<Record<string, ComponentType>>>(
  root: AnyRoute,
  path: string,
  load: () => Promise<Module>,
  name: keyof Module & string,
): AnyRoute {
  return createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(async () => ({ default: (await load())[name] }), 'default'),
  });
}

/** A path that only leads to another. */
export function redirectRoute(root: AnyRoute, path: string, to: string): AnyRoute {
  return createRoute({
    getParentRoute: () => root,
    path,
    beforeLoad: () => {
      throw redirect({ to, replace: true });
    },
  });
}
