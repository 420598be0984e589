import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Client } from 'pg';

/** A role with exactly the rights of some files in deploy/postgres. */
export type DatabaseRole = Readonly<{
  name: string;
  /** Enters the database as this role. */
  url: string;
  /** Runs a statement as the owner; `ROLE` in it is the role's name. */
  asOwner(statement: string): Promise<void>;
  drop(): Promise<void>;
}>;

export type GrantFile =
  | 'server-with-migrations'
  | 'server'
  | 'add-orders'
  | 'enqueue-jobs'
  | 'work-jobs'
  | 'start-sagas'
  | 'guard-steps';

export async function createDatabaseRole(
  ownerUrl: string,
  ...files: readonly GrantFile[]
): Promise<DatabaseRole> {
  const name = `role_${randomBytes(5).toString('hex')}`;
  const password = randomBytes(12).toString('hex');
  const run = async (statements: string): Promise<void> => {
    const client = new Client({ connectionString: ownerUrl });
    await client.connect();
    try {
      await client.query(statements);
    } finally {
      await client.end();
    }
  };
  // Nothing that everybody may do counts: what a role needs is in its file.
  await run(`CREATE ROLE ${name} LOGIN PASSWORD '${password}'; REVOKE ALL ON SCHEMA public FROM PUBLIC`);
  for (const file of files)
    await run(await grantsOf(file, { role: name, schema: 'public', database: databaseOf(ownerUrl) }));
  const url = new URL(ownerUrl);
  url.username = name;
  url.password = password;
  return {
    name,
    url: url.href,
    asOwner: (statement) => run(statement.replaceAll('ROLE', name)),
    drop: () => run(`DROP OWNED BY ${name} CASCADE; DROP ROLE ${name}`),
  };
}

const databaseOf = (url: string): string => new URL(url).pathname.slice(1);

type Variables = Readonly<{ role: string; schema: string; database: string }>;

/** What psql makes of the file: its variables, and \gexec of the one statement that needs the database's name. */
async function grantsOf(file: GrantFile, variables: Variables): Promise<string> {
  const text = await readFile(new URL(`../../deploy/postgres/${file}.sql`, import.meta.url), 'utf8');
  return text
    .replace(
      /^SELECT format\('(.*) %I TO %I', current_database\(\), :'role'\) \\gexec$/m,
      '$1 :"database" TO :"role";',
    )
    .replaceAll(/:"(role|schema|database)"/g, (_all, name: keyof Variables) => `"${variables[name]}"`);
}
