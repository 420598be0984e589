import type { Config } from '../config.ts';
import { AppError } from '../kernel/errors.ts';
import type { Database } from '../platform/postgres/database.ts';
import { databaseTrouble } from './database-trouble.ts';

/** Opens the configured database for the work and closes it after; embedded or not. */
export async function withDatabase<T>(config: Config, work: (db: Database) => Promise<T>): Promise<T> {
  // Loaded by the commands that need it: all parts of the system together take a while, and most commands only
  // talk to a server.
  const { loggerFor, openDatabase } = await import('../compose.ts');
  return explainingDatabase(config, async () => {
    const { database, db } = await openDatabase(config, loggerFor(config));
    try {
      return await work(db);
    } finally {
      await db.end();
      await database?.stop();
    }
  });
}

/** A database that cannot be reached or entered is said in words, with what to do. */
export async function explainingDatabase<T>({ database }: Config, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const trouble = database.mode === 'server' ? databaseTrouble(error, database) : null;
    if (trouble === null) throw error;
    throw new AppError(
      'SYS_PLATFORM_DATABASE_UNAVAILABLE',
      'unavailable',
      `the database cannot be used: ${trouble.found}; ${trouble.advice}`,
      { cause: error },
    );
  }
}
