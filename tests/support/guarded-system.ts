import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiClient, type ApiClient } from './api-client.ts';
import { audience, startIssuer, type Claims, type Issuer } from './issuer.ts';
import { startTestSystem, type TestSystem, type TestSystemOptions } from './start-system.ts';

/** A system that asks for tokens of a real provider. Every role can be had by a token with its name. */
export type GuardedSystem = Readonly<{
  system: TestSystem;
  issuer: Issuer;
  /** With a token of a person who has these roles at the issuer. */
  as(roles: readonly string[], claims?: Claims): Promise<ApiClient>;
  /** With this token or API key. */
  withToken(token: string): ApiClient;
  tokenOf(roles: readonly string[], claims?: Claims): Promise<string>;
  /** Another replica on the same database. */
  startReplica(): Promise<TestSystem>;
  drop(): Promise<void>;
}>;

export type GuardedOptions = Pick<TestSystemOptions, 'kafka' | 'logger'> &
  Readonly<{ auth?: object; more?: object }>;

/** What narrows the role `narrow_<role>`: names that begin with `in`. */
export const inScope = { topics: ['in.*'], queues: ['in-*'], destinations: ['in-*'], workflows: ['in-*'] };

export const humanRoles = ['sys_auditor', 'sys_operator', 'sys_admin'] as const;
export const everyRole = [...humanRoles, 'worker', 'producer'] as const;

const narrowed = Object.fromEntries(
  everyRole.map((role) => [`narrow_${role}`, { extends: role, ...inScope }]),
);

export async function startGuardedSystem(options: GuardedOptions = {}): Promise<GuardedSystem> {
  const { auth = {}, more = {}, kafka = 'off', logger } = options;
  const issuer = await startIssuer([...everyRole]);
  const folder = await mkdtemp(join(tmpdir(), 'redrive-auth-'));
  const file = join(folder, 'config.yaml');
  const subjects = [...everyRole, ...Object.keys(narrowed)];
  // YAML is a superset of JSON.
  await writeFile(
    file,
    JSON.stringify({
      auth: {
        jwt: { issuer: issuer.url, audience },
        api_keys: { enabled: true },
        roles: narrowed,
        bindings: subjects.map((role) => ({ role, subjects: [`role:${role}`] })),
        ...auth,
      },
      ...more,
    }),
  );
  const env = { CONFIG_PATH: file };
  const system = await startTestSystem({ kafka, env, ...(logger === undefined ? {} : { logger }) });
  const withToken = (token: string): ApiClient =>
    createApiClient(system.url, { authorization: `Bearer ${token}` });
  const tokenOf: GuardedSystem['tokenOf'] = (roles, claims = {}) => issuer.sign({ roles, ...claims });
  return {
    system,
    issuer,
    withToken,
    tokenOf,
    as: async (roles, claims) => withToken(await tokenOf(roles, claims)),
    startReplica: () => startTestSystem({ kafka, env, database: system.database }),
    async drop() {
      await system.drop();
      await issuer.stop();
      await rm(folder, { recursive: true });
    },
  };
}
