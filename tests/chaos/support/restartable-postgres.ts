import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrationSources } from '../../../src/compose.ts';
import { startEmbeddedPostgres } from '../../../src/platform/embedded/embedded-postgres.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { migrateUp } from '../../../src/platform/postgres/migrate.ts';
import { connectTo } from '../../support/database.ts';

/** A PostgreSQL of the test's own, which keeps its promises over a crash: nothing is switched off. */
export type RestartablePostgres = Readonly<{
  url: string;
  db: Database;
  /** Ends at once, without a checkpoint; what was committed must come back from the log. */
  crash(): Promise<void>;
  /** On the same port and data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}>;

export async function startRestartablePostgres(): Promise<RestartablePostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-chaos-'));
  const dataDir = join(folder, 'postgres');
  let server = await startEmbeddedPostgres({ dataDir });
  const { port, url } = server;
  const db = connectTo(url);
  await migrateUp(db, migrationSources);
  return {
    url,
    db,
    async crash() {
      process.kill(server.pid, 'SIGQUIT');
      await server.exited;
    },
    async restart() {
      server = await startEmbeddedPostgres({ dataDir, port });
    },
    async stop() {
      await db.end();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
      if (!server.folder.startsWith(folder)) await rm(server.folder, { recursive: true, force: true });
    },
  };
}
