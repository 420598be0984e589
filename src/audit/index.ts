import type { Service } from '../kernel/service.ts';
import type { Protection } from '../kernel/protect/protection.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import type { Worker } from '../platform/work/work.ts';
import { addBrowseRoutes } from './browse/routes.ts';
import { createDenials, type Denials } from './denials/denials.ts';
import { createWriteLines, type LineSettings } from './seal/audit-lines.ts';
import { anchorDestinations, createAddAnchors, type AddOrders, type AnchorSettings } from './seal/anchors.ts';
import { createCoverEvent } from './cover-event.ts';
import { createSealCheck } from './seal/seal-check.ts';
import { createSealer } from './seal/sealer.ts';
import { createAuditRetention } from './upkeep/retention.ts';
import { addVerifyRoute } from './verify/verify-route.ts';

export { anchorDestinations } from './seal/anchors.ts';
export { verifyChain } from './verify/verify-chain.ts';

/** The log of what people did. Everybody writes to it with `recordAct`; this keeps it, proves it and shows it. */
export type Audit = Readonly<{
  denials: Omit<Denials, 'service'>;
  addRoutes(app: HttpApp): void;
  checks: readonly HealthCheck[];
  /** Run in one process at a time. */
  maintenance: readonly Service[];
  /** Run in every process that answers requests. */
  services: readonly Service[];
}>;

export type AuditDeps = Readonly<{
  db: Database;
  worker: Worker;
  metrics: Metrics;
  logger: Logger;
  /** Sends what is sealed to a place outside the database, if the settings name one. */
  addOrders: AddOrders;
  protection: Protection;
  settings: AnchorSettings & LineSettings;
}>;

export const auditMigrations: MigrationSource = {
  slice: 'audit',
  directory: new URL('migrations/', import.meta.url),
};

export function createAudit(deps: AuditDeps): Audit {
  const logger = deps.logger.child({ part: 'audit' });
  const cover = createCoverEvent(deps.protection.ofEverything());
  const denials = createDenials({ ...deps, logger });
  return {
    denials,
    addRoutes(app) {
      addBrowseRoutes(app, { db: deps.db, cover });
      addVerifyRoute(app, deps.db);
    },
    checks: [createSealCheck(deps.db)],
    services: [denials.service],
    maintenance: [
      createSealer({
        ...deps,
        logger,
        addAnchors: anchorDestinations(deps.settings).length === 0 ? null : createAddAnchors(deps.addOrders),
        writeLines: createWriteLines(deps.settings, cover),
      }),
      createAuditRetention(deps.worker, logger),
    ],
  };
}
