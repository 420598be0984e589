import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** A real PgBouncer in transaction mode in front of a PostgreSQL, for tests. */
export type PgBouncer = Readonly<{
  /** The same database through the pooler. */
  urlOf(url: string): string;
  /** What it has logged: refused startup parameters are in there. */
  log(): string;
  stop(): Promise<void>;
}>;

const places = [
  '/usr/sbin/pgbouncer',
  '/usr/bin/pgbouncer',
  '/usr/local/bin/pgbouncer',
  '/opt/homebrew/bin/pgbouncer',
];
const startWithinMs = 10_000;
/** PgBouncer does not run as root. */
const nobody = 65_534;

export function findPgBouncer(): string | undefined {
  return places.find((path) => existsSync(path));
}

/** Few connections to the server, so that statements of one client go over different ones. */
export async function startPgBouncer(program: string, serverUrl: string): Promise<PgBouncer> {
  const { hostname, port, username, password } = new URL(serverUrl);
  const folder = await mkdtemp(join(tmpdir(), 'redrive-pgbouncer-'));
  const listenPort = await freePort();
  const config = join(folder, 'pgbouncer.ini');
  const login = `user=${decodeURIComponent(username)} password=${decodeURIComponent(password)}`;
  await writeFile(
    config,
    [
      '[databases]',
      `* = host=${hostname} port=${port} ${login}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${listenPort}`,
      'unix_socket_dir =',
      'auth_type = any',
      'pool_mode = transaction',
      'default_pool_size = 6',
      // The statements of one client go over all of them in turn.
      'server_round_robin = 1',
      'max_client_conn = 1000',
      '',
    ].join('\n'),
  );
  await chmod(folder, 0o755);
  const asNobody = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
  const child = spawn(program, [config], { cwd: '/', stdio: ['ignore', 'pipe', 'pipe'], ...asNobody });
  let log = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => void (log += text));
  const exited = once(child, 'exit');
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
    await rm(folder, { recursive: true, force: true });
  };
  if (!(await listens(listenPort))) {
    await stop();
    throw new Error(`PgBouncer did not start:\n${log}`);
  }
  return {
    urlOf(url) {
      const pooled = new URL(url);
      pooled.host = `127.0.0.1:${listenPort}`;
      return pooled.href;
    },
    log: () => log,
    stop,
  };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

async function listens(port: number): Promise<boolean> {
  const giveUpAtMs = performance.now() + startWithinMs;
  while (performance.now() < giveUpAtMs) {
    const socket = connect(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return true;
    } catch {
      await delay(50);
    } finally {
      socket.destroy();
    }
  }
  return false;
}
