import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { SUPERUSER } from './cluster.ts';
import { openDataHome } from './data-home.ts';
import { DATABASE, HOST } from './embedded-postgres.ts';
import { openSharedFolder } from './shared-folder.ts';

const PORT_LINE = 3;

/** The address of the PostgreSQL that another process runs in this data folder; undefined if there is none. */
export async function findRunningPostgres(dataDir: string): Promise<string | undefined> {
  const home = await openDataHome(resolve(dataDir), openSharedFolder);
  const read = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '');
  const port = (await read(join(home.cluster, 'postmaster.pid'))).split('\n')[PORT_LINE]?.trim();
  const password = (await read(home.passwordFile)).trim();
  if (!port || !password) return undefined;
  return `postgres://${SUPERUSER}:${password}@${HOST}:${port}/${DATABASE}`;
}
