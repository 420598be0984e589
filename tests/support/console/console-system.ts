import assert from 'node:assert/strict';
import type { Database } from '../../../src/platform/postgres/database.ts';
import type { ApiClient } from '../api-client.ts';
import { eventually } from '../eventually.ts';
import { startGuardedSystem, type GuardedOptions } from '../guarded-system.ts';
import { startTestSystem, type TestSystem, type TestSystemOptions } from '../start-system.ts';

/** A server with the console, ready to be opened. */
export type ConsoleSystem = Readonly<{
  url: string;
  /** Calls the API with all rights, to prepare what a test shows. */
  api: ApiClient;
  db: Database;
  broker: TestSystem['broker'];
  system: TestSystem;
  /** A token of somebody with this role, by default always the same person; null where nobody is asked for one. */
  tokenOf(role: string, person?: string): Promise<string | null>;
  drop(): Promise<void>;
}>;

export async function startConsoleSystem(options: TestSystemOptions = {}): Promise<ConsoleSystem> {
  return consoleOf(await startTestSystem({ kafka: 'off', ...options }));
}

/** The console of a running server that asks for no tokens. */
export async function consoleOf(system: TestSystem): Promise<ConsoleSystem> {
  await untilBuilt(system.api);
  const { url, api, db, broker } = system;
  return { url, api, db, broker, system, tokenOf: async () => null, drop: () => system.drop() };
}

/** A server that asks for a token. Roles narrowed to names that begin with `in` are `narrow_sys_operator` and so on. */
export async function startGuardedConsole(options: GuardedOptions = {}): Promise<ConsoleSystem> {
  const { system, as, tokenOf, drop } = await startGuardedSystem(options);
  await untilBuilt(system.api);
  const { url, db, broker } = system;
  const api = await as(['sys_admin']);
  return {
    url,
    api,
    db,
    broker,
    system,
    tokenOf: (role, person) => tokenOf([role], person === undefined ? {} : { sub: person }),
    drop,
  };
}

/** `npm test` has built it already; a single file may have to wait. */
export async function untilBuilt(api: ApiClient): Promise<void> {
  await eventually(async () => {
    const { status, text } = await api.get('/');
    assert.equal(status, 200, text);
  });
}
