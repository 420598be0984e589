import { randomUUID } from 'node:crypto';
import { onceAborted, systemClock } from '../kernel/clock.ts';
import type { Service } from '../kernel/service.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import { countAttention, readChanges } from '../platform/work/changes/read-changes.ts';
import type { WatchedRows } from '../platform/work/changes/watched-rows.ts';
import type { Worker } from '../platform/work/work.ts';
import { addAssetRoutes } from './assets/asset-routes.ts';
import { createConsoleBuild } from './assets/console-build.ts';
import { createChangeHub, type HubDeps } from './events/change-hub.ts';
import type { EventSliceName } from './events/event-slices.ts';
import { addEventsRoute } from './events/events-route.ts';
import { addFindRoute, type FindDeps } from './find/find-route.ts';
import { addInboxRoutes } from './inbox/inbox-routes.ts';
import type { InboxDeps } from './inbox/list-entries.ts';
import { createInboxRecorder } from './inbox/record-entries.ts';
import { addViewRoutes } from './views/view-routes.ts';
import { addSystemRoutes, type SystemDeps } from './system/system-routes.ts';

/** The server part of the web console. */
export type Console = Readonly<{
  /** Streams of events end when `stopping` aborts. */
  addRoutes(app: HttpApp, server: Readonly<{ stopping: AbortSignal } & Pick<SystemDeps, 'readiness'>>): void;
  services: readonly Service[];
  /** What one replica does for all. */
  maintenance: readonly Service[];
}>;

export type { InboxDeps };

export type ConsoleDeps = Readonly<{
  db: Database;
  worker: Worker;
  /** The rows of each slice that lists show. */
  watched: Readonly<Record<EventSliceName, WatchedRows>>;
  watchRedrives: HubDeps['watchRedrives'];
  /** What the slices give to the inbox, and how its texts are shown. */
  inbox: Pick<InboxDeps, 'parts' | 'masks'>;
  /** What the page about the whole system shows. */
  system: Omit<SystemDeps, 'db' | 'readiness'>;
  finders: FindDeps['finders'];
  logger: Logger;
  options: Readonly<{ publicUrl: string | undefined; environment: string; login: string | null }>;
}>;

export const consoleMigrations: MigrationSource = {
  slice: 'console',
  directory: new URL('migrations/', import.meta.url),
};

export function createConsole(deps: ConsoleDeps): Console {
  const { db, worker, watched, watchRedrives, inbox, system, finders, logger, options } = deps;
  const { publicUrl, environment, login } = options;
  const build = createConsoleBuild(logger.child({ part: 'console' }));
  const prefix = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '');
  const hub = createChangeHub({
    process: randomUUID().slice(0, 8),
    readChanges: (since) => readChanges(db, watched, since),
    countAttention: (slices) => countAttention(db, watched, slices),
    watchRedrives,
    clock: systemClock,
    onError: (error) => logger.warn({ err: error }, 'failed to read changes for the console'),
  });
  const entries: InboxDeps = {
    ...inbox,
    db,
    onError: (slice, error) => logger.warn({ err: error, slice }, 'failed to read entries of the inbox'),
  };
  return {
    addRoutes(app, { stopping, readiness }) {
      addAssetRoutes(app, { state: build.state, facts: { prefix, environment, login } });
      addEventsRoute(app, hub);
      addFindRoute(app, {
        db,
        finders,
        onError: (error, slice) => logger.warn({ err: error, slice }, 'failed to find items'),
      });
      addInboxRoutes(app, entries);
      addViewRoutes(app, db);
      addSystemRoutes(app, { db, readiness, ...system });
      void onceAborted(stopping).then(hub.stop);
    },
    services: [build],
    maintenance: [createInboxRecorder(worker, entries, logger)],
  };
}
