import type { Config } from '../config/config.ts';
import { AppError } from '../kernel/errors.ts';
import type { Database } from '../platform/postgres/database.ts';
import { databaseTrouble } from './database-trouble.ts';

/** Opens the configured database for the work and closes it afterwards. Joins a running embedded database. */
export async function withDatabase<T>(config: Config, work: (db: Database) => Promise<T>): Promise<T> {
  // Loaded on demand: loading the whole system takes a while, and most commands only call a server.
  const { loggerFor } = await import('../compose.ts');
  const { openDatabase } = await import('../compose/open-database.ts');
  return explainingDatabase(config, async () => {
    const { database, db } = await openDatabase(config, loggerFor(config), { joinsRunning: true });
    try {
      return await work(db);
    } finally {
      await db.end();
      await database?.stop();
    }
  });
}

/** Explains a failed connection or login, with what to do. */
export async function explainingDatabase<T>({ database }: Config, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const trouble = database.mode === 'server' ? databaseTrouble(error, database) : null;
    if (trouble === null) throw error;
    throw new AppError(
      'SYS_PLATFORM_DATABASE_UNAVAILABLE',
      'unavailable',
      `database unavailable: ${trouble.found}; ${trouble.advice}`,
      { cause: error },
    );
  }
}
