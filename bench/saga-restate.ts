import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import {
  connect,
  createServer,
  type ClientHttp2Session,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { createRequire } from 'node:module';
import { createConnection, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { threeSteps } from './saga-support.ts';
import { timed, until } from './support.ts';

/**
 * Restate as a peer. It is no dependency, because its server is a binary of 200 MB under the Business Source License:
 * it is measured where somebody has installed it. The scripts that are left out would report the installation.
 */
export const installRestate =
  'npm install --no-save --ignore-scripts @restatedev/restate-server@1.7.12 @restatedev/restate-sdk@1.17.2';

/** What is used of its SDK, written out, so that the types are there without the package. */
type Context = Readonly<{ run(name: string, action: () => Promise<unknown>): Promise<unknown> }>;
type Handler = (context: Context) => Promise<void>;
type Sdk = Readonly<{
  service(definition: Readonly<{ name: string; handlers: Readonly<Record<string, Handler>> }>): unknown;
  createEndpointHandler(
    options: Readonly<{ services: readonly unknown[]; logger: () => void }>,
  ): (request: Http2ServerRequest, response: Http2ServerResponse) => void;
  TerminalError: new (message: string, options: Readonly<{ errorCode: number }>) => Error;
}>;

export type Restate = Readonly<{ sdk: Sdk; serverPath: string }>;

/** Null where it is not installed. */
export async function findRestate(): Promise<Restate | null> {
  // Names in variables, because a compiler would look for the package behind a literal one.
  const sdkName = '@restatedev/restate-sdk';
  const serverName = `@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`;
  try {
    const serverPath = createRequire(import.meta.url).resolve(serverName);
    return { sdk: (await import(sdkName)) as Sdk, serverPath };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code === 'MODULE_NOT_FOUND' || code === 'ERR_MODULE_NOT_FOUND') return null;
    throw error;
  }
}

export type RestateSetting = Readonly<{
  count: number;
  atOnce: number;
  /** Null: as it comes, 24. They are its shards, each with a log of its own. */
  partitions: number | null;
  /** So many first. */
  warmUp: number;
}>;

/**
 * Sagas per second, forward and with two undone, on a fresh server that writes to the disk as it comes. As with the
 * other peer, so many callers wait for the end of one saga each before they start the next. They share a connection
 * over HTTP/2, which is twice as fast as one each over HTTP/1.1. What the first calls take is left out.
 */
export async function measureRestate(
  restate: Restate,
  { count, atOnce, partitions, warmUp }: RestateSetting,
): Promise<Readonly<{ forward: number; undo: number }>> {
  const participants = { calls: 0 };
  const server = await startServer(restate.serverPath, partitions);
  const endpoint = createServer(serveSagas(restate.sdk, participants)).listen(0, '127.0.0.1');
  const session = openSession(server.ingressSocket);
  try {
    await once(endpoint, 'listening');
    await register(server.adminSocket, endpoint.address() as AddressInfo);
    const drain = async (handler: 'forward' | 'undo', sagas: number): Promise<void> => {
      const [endsWith, callsEach] = handler === 'forward' ? [200, 3] : [refusedCode, 5];
      const callsBefore = participants.calls;
      let started = 0;
      const callOneByOne = async (): Promise<void> => {
        while (started < sagas) {
          started += 1;
          const status = await ask(session, 'POST', `/${serviceName}/${handler}`);
          if (status !== endsWith) throw new Error(`Restate answered ${status} to a saga, not ${endsWith}`);
        }
      };
      await Promise.all(Array.from({ length: atOnce }, callOneByOne));
      const calls = participants.calls - callsBefore;
      if (calls < sagas * callsEach) throw new Error(`${calls} calls for ${sagas} sagas are too few`);
    };
    await drain('forward', warmUp);
    const forward = count / (await timed(() => drain('forward', count)));
    await drain('undo', warmUp);
    const undo = count / (await timed(() => drain('undo', count)));
    return { forward, undo };
  } finally {
    session.destroy();
    await server.stop();
    endpoint.close();
  }
}

const serviceName = 'Bench';
const refusedCode = 409;

/**
 * Sagas as its guide writes them: a list of undos, run backwards when a terminal error is caught. An undo is listed
 * once its step is done, as the guide has it for participants that answer with an id, so that the refused step has
 * none and the calls are those of ours.
 */
function serveSagas(sdk: Sdk, participants: { calls: number }): ReturnType<Sdk['createEndpointHandler']> {
  const done = async (): Promise<{ id: string }> => {
    participants.calls += 1;
    return { id: 'r-1' };
  };
  const refuse = async (): Promise<never> => {
    participants.calls += 1;
    throw new sdk.TerminalError('no', { errorCode: refusedCode });
  };
  const runSaga = async (context: Context, refusedStep: string | null): Promise<void> => {
    const undos: (() => Promise<unknown>)[] = [];
    try {
      for (const { name } of threeSteps.steps) {
        await context.run(name, name === refusedStep ? refuse : done);
        undos.push(() => context.run(`undo-${name}`, done));
      }
    } catch (error) {
      if (error instanceof sdk.TerminalError) for (const undo of undos.toReversed()) await undo();
      throw error;
    }
  };
  const service = sdk.service({
    name: serviceName,
    handlers: {
      forward: (context) => runSaga(context, null),
      undo: (context) => runSaga(context, 'ship'),
    },
  });
  return sdk.createEndpointHandler({ services: [service], logger: () => {} });
}

type Server = Readonly<{ adminSocket: string; ingressSocket: string; stop(): Promise<void> }>;

/** It listens on Unix sockets in its folder only, so that no port can be taken. */
async function startServer(serverPath: string, partitions: number | null): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-restate-'));
  const logPath = join(folder, 'server.log');
  const log = await open(logPath, 'w');
  const args = ['--base-dir', folder, '--node-name', 'bench', '--listen-mode', 'unix', '--no-logo'];
  if (partitions !== null) args.push('--default-num-partitions', String(partitions));
  const child = spawn(serverPath, args, {
    stdio: ['ignore', log.fd, log.fd],
    env: { DO_NOT_TRACK: '1', RESTATE_DISABLE_TELEMETRY: 'true', RESTATE_LOG_FILTER: 'warn' },
  });
  // It rejects if there is no such program, and there is no process id then.
  const ended = once(child, 'exit').catch(() => {});
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
    await log.close();
    await rm(folder, { recursive: true, force: true });
  };
  const adminSocket = join(folder, 'bench', 'admin.sock');
  const ingressSocket = join(folder, 'bench', 'ingress.sock');
  try {
    await until(async () => {
      if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null)
        throw new Error(`${serverPath} did not start: ${await readFile(logPath, 'utf8')}`);
      return (await isHealthy(adminSocket, '/health')) && isHealthy(ingressSocket, '/restate/health');
    }, 60_000);
  } catch (error) {
    await stop();
    throw error;
  }
  return { adminSocket, ingressSocket, stop };
}

async function isHealthy(socket: string, path: string): Promise<boolean> {
  const session = openSession(socket);
  try {
    return (await ask(session, 'GET', path)) === 200;
  } catch {
    return false;
  } finally {
    session.destroy();
  }
}

async function register(adminSocket: string, { port }: AddressInfo): Promise<void> {
  const session = openSession(adminSocket);
  const uri = `http://127.0.0.1:${port}/`;
  const status = await ask(session, 'POST', '/deployments', JSON.stringify({ uri }));
  session.destroy();
  if (status !== 201) throw new Error(`Restate answered ${status} to the registration of the service`);
}

function openSession(socket: string): ClientHttp2Session {
  const session = connect('http://localhost', { createConnection: () => createConnection(socket) });
  // A broken connection is also an error of each of its requests, and is seen there.
  session.on('error', () => {});
  return session;
}

/** The status of the answer, once all of it is here. */
async function ask(
  session: ClientHttp2Session,
  method: 'GET' | 'POST',
  path: string,
  body?: string,
): Promise<number> {
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const stream = session.request({ ':method': method, ':path': path, ...type });
  const answered = Promise.withResolvers<number>();
  let status = NaN;
  stream.on('response', (headers) => {
    status = headers[':status'] ?? NaN;
  });
  stream.on('error', answered.reject);
  stream.on('close', () => answered.resolve(status));
  stream.resume();
  stream.end(body);
  return answered.promise;
}
