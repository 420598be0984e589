import type { Service } from '../kernel/service.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import { addAssetRoutes } from './assets/asset-routes.ts';
import { createConsoleBuild } from './assets/console-build.ts';

/** The server part of the web console. */
export type Console = Readonly<{
  addRoutes(app: HttpApp): void;
  services: readonly Service[];
}>;

export type ConsoleDeps = Readonly<{
  logger: Logger;
  options: Readonly<{ publicUrl: string | undefined; environment: string; login: string | null }>;
}>;

export function createConsole({ logger, options }: ConsoleDeps): Console {
  const { publicUrl, environment, login } = options;
  const build = createConsoleBuild(logger.child({ part: 'console' }));
  const prefix = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '');
  return {
    addRoutes: (app) => addAssetRoutes(app, { state: build.state, facts: { prefix, environment, login } }),
    services: [build],
  };
}
