import { AppError } from '../../kernel/errors.ts';
import type { Queryable } from './database.ts';
import { sql } from './sql.ts';

export type DatabaseEncoding = Readonly<{ name: string; encoding: string }>;

export async function databaseEncoding(db: Queryable): Promise<DatabaseEncoding> {
  const [row] = await db.query<DatabaseEncoding>(sql`
    SELECT current_database() AS name, current_setting('server_encoding') AS encoding`);
  return row ?? { name: '', encoding: '' };
}

/** Payloads and error texts are any Unicode; another encoding would refuse some of them, in the middle of the work. */
export async function requireUtf8(db: Queryable): Promise<void> {
  const { name, encoding } = await databaseEncoding(db);
  if (encoding !== 'UTF8')
    throw new AppError(
      'SYS_PLATFORM_DATABASE_NOT_UTF8',
      'internal',
      `database ${name} has the encoding ${encoding}, and Redrive needs UTF8: ${utf8Advice}`,
    );
}

export const utf8Advice =
  "create another database with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' " +
  'and name it in database.name';
