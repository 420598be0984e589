import { backoffMs } from '../kernel/backoff.ts';
import { onceAborted, sleep } from '../kernel/clock.ts';
import { AppError, messageOf } from '../kernel/errors.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import {
  migrateUp,
  migrationStatus,
  type MigrationSource,
  type MigrationStatus,
} from '../platform/postgres/migrate.ts';
import type { Logger } from '../platform/telemetry/logger.ts';

/** Keeps the server from its work while migrations are missing. Migrations of a newer version are accepted. */
export type SchemaGate = Readonly<{
  /** Which migrations the server waits for; null if it may work. */
  outdated(): AppError | null;
  /** Waits until somebody has applied them; false if the signal came first. */
  wait(signal: AbortSignal): Promise<boolean>;
  /** The services run: requests are served from now on. */
  open(): void;
  check: HealthCheck;
  /** A check that reads tables of the slices, held back until the gate opens. */
  heldBack(check: HealthCheck): HealthCheck;
}>;

export type SchemaGateOptions = Readonly<{
  sources: readonly MigrationSource[];
  /** Apply what is missing, instead of waiting for somebody who does. */
  migrate: boolean;
  version: string;
  logger: Logger;
  /** After every look at the database. */
  onStatus: (status: readonly MigrationStatus[]) => void;
}>;

const lookAgain = { initialMs: 250, maxMs: 5000, jitter: 0.1 };

/** Applies the migrations, or only looks which are applied. */
export async function createSchemaGate(db: Database, options: SchemaGateOptions): Promise<SchemaGate> {
  const { sources, migrate, version, logger, onStatus } = options;
  if (migrate)
    await migrateUp(db, sources, ({ slice, number, name }) =>
      logger.info({ migration: `${slice}/${number} ${name}` }, 'applied migration'),
    );
  const look = async (): Promise<AppError | null> => {
    const status = await migrationStatus(db, sources);
    onStatus(status);
    return outdatedBy(status, version);
  };
  let outdated = await look();
  let failure: string | null = null;
  const isUpToDate = async (): Promise<boolean> => {
    try {
      const found = await look();
      failure = null;
      // What is missing is still said until the services run.
      outdated = found ?? outdated;
      return found === null;
    } catch (error) {
      if (error instanceof AppError) throw error;
      if (failure !== messageOf(error)) logger.warn({ err: error }, 'failed to read the applied migrations');
      failure = messageOf(error);
      return false;
    }
  };
  return {
    outdated: () => outdated,
    async wait(signal) {
      for (let looks = 1; !signal.aborted; looks += 1) {
        await sleep(backoffMs(lookAgain, looks), signal);
        if (!signal.aborted && (await Promise.race([isUpToDate(), abortOf(signal)]))) return !signal.aborted;
      }
      return false;
    },
    open: () => void (outdated = null),
    check: {
      name: 'schema',
      critical: true,
      async check() {
        if (outdated === null) return { status: 'healthy' };
        const why = failure === null ? '' : `; failed to read the applied migrations: ${failure}`;
        return { status: 'unhealthy', message: `${outdated.message}${why}` };
      },
    },
    heldBack: (check) => ({
      ...check,
      check: async (signal) =>
        outdated === null ? check.check(signal) : { status: 'degraded', message: 'waits for migrations' },
    }),
  };
}

async function abortOf(signal: AbortSignal): Promise<false> {
  await onceAborted(signal);
  return false;
}

/** Waiting does not help against a migration that was changed. */
function outdatedBy(status: readonly MigrationStatus[], version: string): AppError | null {
  const changed = status.filter(({ state }) => state === 'changed');
  if (changed.length > 0)
    throw new AppError(
      'SYS_PLATFORM_MIGRATION_CHANGED',
      'internal',
      `migrations were changed after they were applied: ${changed.map(nameOf).join(', ')}`,
    );
  const pending = status.filter(({ state }) => state === 'pending');
  if (pending.length === 0) return null;
  const needed = [...new Set(pending.map(({ slice }) => slice))].map((slice) => {
    const last = (state: MigrationStatus['state']): number =>
      Math.max(
        0,
        ...status.filter((one) => one.slice === slice && one.state === state).map((one) => one.number),
      );
    return `${slice} ${last('pending')} (has ${last('applied') || 'none'})`;
  });
  return new AppError(
    'SYS_PLATFORM_SCHEMA_OUTDATED',
    'unavailable',
    `the database schema is outdated: Redrive ${version} needs ${needed.join(', ')}; run \`redrive migrate up\``,
    { retryAfterMs: lookAgain.maxMs },
  );
}

const nameOf = ({ slice, number, name }: MigrationStatus): string => `${slice}/${number} ${name}`;
