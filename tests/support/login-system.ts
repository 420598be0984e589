import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, request, type Server } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openBrowser, type Browser, type Page } from './browser.ts';
import { audience, startIssuer, type Issuer } from './issuer.ts';
import { cliClient, consoleClient, createPeople, type PeopleOptions } from './people.ts';
import { startTestSystem, type TestSystem } from './start-system.ts';

/** A system in which people log in at a real OpenID provider, by browser or with the command line. */
export type LoginSystem = Readonly<{
  system: TestSystem;
  /** Where people reach it. */
  publicUrl: string;
  issuer: Issuer;
  people: ReturnType<typeof createPeople>;
  /** Holds `session-keys`, as an agent would mount them. */
  secretsDir: string;
  /** A browser in which the person has logged in. */
  login(returnTo?: string): Promise<Browser>;
  /** With the same secrets, or with those of another machine. */
  startReplica(secrets?: string): Promise<TestSystem>;
  drop(): Promise<void>;
}>;

export type LoginSystemOptions = Readonly<{
  auth?: object;
  /** Behind the port. */
  path?: string;
  /** By which browsers reach a proxy before it; without it the address of the server itself. */
  publicUrl?: string;
  /** People reach the server through a proxy that takes the path away. */
  isProxied?: boolean;
  people?: Partial<PeopleOptions>;
}>;

export const firstSessionKey = 'the-first-key-of-the-tests-0123456789';

export async function startLoginSystem(options: LoginSystemOptions = {}): Promise<LoginSystem> {
  const port = await freePort();
  const publicUrl = options.publicUrl ?? `http://127.0.0.1:${port}${options.path ?? ''}`;
  const people = createPeople({ publicUrl, ...options.people });
  const issuer = await startIssuer(['sys_admin'], people);
  const folder = await mkdtemp(join(tmpdir(), 'redrive-login-'));
  const file = join(folder, 'config.yaml');
  await writeFile(join(folder, 'session-keys'), `${firstSessionKey}\n`);
  await writeFile(join(folder, 'oidc-client-secret'), `${consoleClient.secret}\n`);
  await writeFile(
    file,
    JSON.stringify({
      server: { public_url: publicUrl, trusted_proxies: ['127.0.0.1'] },
      auth: {
        oidc: { issuer: issuer.url, client_id: consoleClient.id },
        jwt: { issuer: issuer.url, audience },
        cli: { client_id: cliClient },
        api_keys: { enabled: true },
        ...options.auth,
      },
    }),
  );
  const env = { CONFIG_PATH: file, PORT: options.isProxied === true ? '0' : String(port) };
  const system = await startTestSystem({ env, secretsDir: folder });
  const proxy = options.isProxied === true ? await startProxy(port, options.path ?? '', system.url) : null;
  return {
    system,
    publicUrl,
    issuer,
    people,
    secretsDir: folder,
    async login(returnTo = '/') {
      const browser = openBrowser();
      await expectLogin(browser.open(`${system.url}/auth/login?return_to=${encodeURIComponent(returnTo)}`));
      return browser;
    },
    startReplica: (secrets = folder) =>
      startTestSystem({ env: { ...env, PORT: '0' }, secretsDir: secrets, database: system.database }),
    async drop() {
      proxy?.closeAllConnections();
      proxy?.close();
      await system.drop();
      await issuer.stop();
      await rm(folder, { recursive: true });
    },
  };
}

async function expectLogin(opening: Promise<Page>): Promise<void> {
  const { status, text, url } = await opening;
  if (status !== 200 && status !== 503) throw new Error(`the login ended at ${url} with ${status}: ${text}`);
}

/** Passes on what is below the path, without it, as a reverse proxy does. */
async function startProxy(port: number, path: string, to: string): Promise<Server> {
  const { host } = new URL(to);
  const server = createHttpServer((incoming, outgoing) => {
    const below = incoming.url?.startsWith(`${path}/`) === true ? incoming.url.slice(path.length) : '/';
    const headers = { ...incoming.headers, host: incoming.headers.host ?? host, 'x-forwarded-proto': 'http' };
    const passed = request(`${to}${below}`, { method: incoming.method ?? 'GET', headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => passed.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return server;
}

/** The provider must know the address before the server listens. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
