import { formatInstant, formatTimestamp, type ReadInstant } from '../../kernel/timestamp.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import type { ReadinessReport } from '../../platform/http/readiness.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { readClock } from '../../platform/postgres/read-clock.ts';
import { readLeases, readReplicas } from './read-replicas.ts';
import { ConfigSchema, NotifiersSchema, ReplicasSchema, StatusSchema } from './system-schemas.ts';

export type SystemDeps = Readonly<{
  db: Queryable;
  /** Of the process that answers. */
  about: Readonly<{ replica: string; version: string; environment: string; roles: readonly string[] }>;
  readiness: () => Promise<ReadinessReport>;
  readNotifiers: () => Promise<NotifierStates>;
  describeConfig: () => readonly Readonly<{ path: string; value: string | null; source: string | null }>[];
}>;

/** What the module of notifications tells. */
export type NotifierStates = Readonly<{
  notifiers: readonly Readonly<{
    name: string;
    type: string;
    slices: readonly string[];
    toldAt: ReadInstant | null;
    held: number;
    hasFailed: boolean;
  }>[];
  oldestEventAt: ReadInstant | null;
}>;

/** All of it is about the whole system, so narrowed roles do not see it. */
const access = { permission: 'system:status:view' } as const;

/**
 * One route per part, so that what cannot be read is missing alone: the status asks no database, because it has to say
 * that the database is away.
 */
export function addSystemRoutes(app: HttpApp, deps: SystemDeps): void {
  addStatus(app, deps);
  addReplicas(app, deps);
  addNotifiers(app, deps);
  app.get(
    '/api/v1/system/config',
    {
      config: { access },
      schema: {
        operationId: 'getSystemConfig',
        summary: 'The configuration in effect, with secrets hidden',
        description:
          'Of the process that answers. Of addresses only the server is shown, because the rest may be a secret.',
        response: { 200: ConfigSchema },
      },
    },
    () => ({ settings: deps.describeConfig() }),
  );
}

function addStatus(app: HttpApp, { about, readiness }: SystemDeps): void {
  app.get(
    '/api/v1/system',
    {
      config: { access },
      schema: {
        operationId: 'getSystemStatus',
        summary: 'Readiness with every check',
        description: 'What `/readyz` says, of the process that answers, with the message of each check.',
        response: { 200: StatusSchema },
      },
    },
    async () => {
      const { status, checks, timestamp } = await readiness();
      return {
        ...about,
        status,
        checks: Object.entries(checks).map(([name, { status: one, message = null }]) => ({
          name,
          status: one,
          message,
        })),
        checked_at: timestamp,
      };
    },
  );
}

function addReplicas(app: HttpApp, { db }: SystemDeps): void {
  app.get(
    '/api/v1/system/replicas',
    {
      config: { access },
      schema: {
        operationId: 'listReplicas',
        summary: 'List the processes, and who holds which lease',
        description: 'Processes that were heard of in the last hour, and what one process does at a time.',
        response: { 200: ReplicasSchema },
      },
    },
    async () => {
      const asOf = await readClock(db);
      const [replicas, leases] = [await readReplicas(db), await readLeases(db)];
      return {
        replicas: replicas.map((replica) => ({
          replica_id: replica.replicaId,
          roles: replica.roles,
          version: replica.version,
          kafka_cluster_id: replica.kafkaClusterId,
          started_at: formatInstant(replica.startedAt),
          seen_at: formatInstant(replica.seenAt),
          alive: replica.isAlive,
        })),
        leases: leases.map(({ name, owner, until, isHeld }) => ({
          name,
          owner,
          until: formatInstant(until),
          held: isHeld,
        })),
        as_of: formatTimestamp(asOf),
      };
    },
  );
}

function addNotifiers(app: HttpApp, { db, readNotifiers }: SystemDeps): void {
  app.get(
    '/api/v1/system/notifiers',
    {
      config: { access },
      schema: {
        operationId: 'listNotifiers',
        summary: 'List the notifiers, and whether they reach anybody',
        description: 'The notifiers of the configuration of the process that answers.',
        response: { 200: NotifiersSchema },
      },
    },
    async () => {
      const asOf = await readClock(db);
      const { notifiers, oldestEventAt } = await readNotifiers();
      return {
        notifiers: notifiers.map(({ name, type, slices, toldAt, held, hasFailed }) => ({
          name,
          type,
          slices,
          told_at: formatInstant(toldAt),
          held,
          failed: hasFailed,
        })),
        oldest_event_at: formatInstant(oldestEventAt),
        as_of: formatTimestamp(asOf),
      };
    },
  );
}
