import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { Client } from 'pg';
import { sleep } from '../../kernel/clock.ts';
import { AppError, codeOf, messageOf } from '../../kernel/errors.ts';
import { ensureCluster, SUPERUSER } from './cluster.ts';
import { openDataHome, type DataHome } from './data-home.ts';
import { lockDataFolder } from './data-lock.ts';
import { findNativeBinaries, makeRunnable, type NativeBinaries } from './native-binaries.ts';
import { startPostmaster, stopLeftover, type Postmaster, type StartOutcome } from './postmaster.ts';
import { openSharedFolder } from './shared-folder.ts';

export const HOST = '127.0.0.1';
export const DATABASE = 'redrive';
const PORT_TRIES = 5;
/** Backends of a killed server end within a second or two. */
const PREDECESSOR_TRIES = 50;
const PREDECESSOR_WAIT_MS = 200;

const DEFAULT_SETTINGS = {
  listen_addresses: HOST,
  // Only TCP on loopback: no stale socket files, and no socket path that is too long.
  unix_socket_directories: '',
  shared_buffers: '128MB',
  max_connections: '100',
  fsync: 'on',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
} as const;

export type EmbeddedPostgresOptions = Readonly<{
  /** Created if missing. Has all data of the database, or the path to it (see data-home.ts). */
  dataDir: string;
  /** Default: any free port. */
  port?: number;
  /** Server settings that override ours for this start. */
  settings?: Readonly<Record<string, string>>;
  log?: (line: string) => void;
  /** Overrides the shared folder (see shared-folder.ts). */
  sharedDir?: string;
}>;

export type EmbeddedPostgres = Readonly<{
  /** Connects the superuser to the database `redrive`. */
  url: string;
  urlOf(database: string): string;
  port: number;
  /** Process id of the server. */
  pid: number;
  /** The actual data folder. */
  folder: string;
  /** Resolves when the server has ended, for any reason. */
  exited: Promise<void>;
  /** Fast shutdown; resolves when the server has ended and the data folder is unlocked. Idempotent. */
  stop(): Promise<void>;
}>;

/**
 * A real PostgreSQL on loopback with its data in a folder. The first start creates it; later starts reuse it, also after
 * a crash. Only one process can use a data folder; a second one gets an error.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir);
  try {
    const packaged = await findNativeBinaries();
    const { sharedDir } = options;
    const openShared = sharedDir === undefined ? openSharedFolder : async () => resolve(sharedDir);
    const home = await openDataHome(dataDir, openShared);
    const lock = lockDataFolder(home.lockFile, home.folder);
    try {
      const binaries = await makeRunnable(packaged, home.account, openShared);
      const running = await startLocked(home, binaries, options);
      const exited = running.exited.then(() => lock.release());
      let stopping: Promise<void> | undefined;
      return { ...running, exited, stop: async () => (stopping ??= running.stop().then(async () => exited)) };
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch (error) {
    throw explain(error, dataDir);
  }
}

async function startLocked(
  home: DataHome,
  binaries: NativeBinaries,
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { log = () => {}, settings = {} } = options;
  const password = await ensureCluster(home, binaries, { sync: settings.fsync !== 'off' });
  if (await stopLeftover(home, binaries)) log(`stopped an orphaned PostgreSQL in ${home.folder}`);
  const { port, postmaster } = await startOnPort(home, binaries, options);
  const urlOf = (database: string) =>
    `postgres://${SUPERUSER}:${password}@${HOST}:${port}/${encodeURIComponent(database)}`;
  try {
    await ensureDatabase(urlOf('postgres'));
  } catch (error) {
    await postmaster.stop();
    throw error;
  }
  log(`PostgreSQL ${binaries.majorVersion} is ready on ${HOST}:${port}, its data is in ${home.folder}`);
  return { url: urlOf(DATABASE), urlOf, port, folder: home.folder, ...postmaster };
}

async function startOnPort(
  home: DataHome,
  binaries: NativeBinaries,
  options: EmbeddedPostgresOptions,
): Promise<{ port: number; postmaster: Postmaster }> {
  const tries = options.port === undefined ? PORT_TRIES : 1;
  for (let i = 0; i < tries; i++) {
    const port = options.port ?? (await findFreePort());
    const settings = { ...DEFAULT_SETTINGS, ...options.settings, port: String(port) };
    const started = await startAfterPredecessor(home, binaries, settings);
    if (started.outcome === 'ready') return { port, postmaster: started.postmaster };
  }
  throw new AppError(
    'SYS_EMBEDDED_PORT_TAKEN',
    'conflict',
    `The embedded PostgreSQL cannot listen on ${HOST}:${options.port ?? 'any free port'}: the port is taken.`,
  );
}

/** Waits for the processes of a server that was killed. */
async function startAfterPredecessor(
  ...args: Parameters<typeof startPostmaster>
): Promise<Exclude<StartOutcome, { outcome: 'predecessor_running' }>> {
  for (let i = 0; i < PREDECESSOR_TRIES; i++) {
    const started = await startPostmaster(...args);
    if (started.outcome !== 'predecessor_running') return started;
    await sleep(PREDECESSOR_WAIT_MS);
  }
  throw new AppError(
    'SYS_EMBEDDED_START_FAILED',
    'unavailable',
    `The embedded PostgreSQL did not start: processes of the previous server in ${args[0].folder} are still running.`,
  );
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, HOST);
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

async function ensureDatabase(url: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } finally {
    await client.end();
  }
}

function explain(error: unknown, dataDir: string): unknown {
  if (error instanceof AppError) return error;
  const code = codeOf(error);
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') return error;
  return new AppError(
    'SYS_EMBEDDED_DATA_UNREACHABLE',
    'unavailable',
    `The embedded PostgreSQL cannot use the data folder ${dataDir}: ${messageOf(error)}. ` +
      'Choose a folder that this user can write with --data-dir, or set DATABASE_URL to a PostgreSQL of your own.',
    { cause: error },
  );
}
