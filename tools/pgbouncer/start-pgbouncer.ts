import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
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

export type PgBouncerOptions = Readonly<{
  /**
   * A configuration to start instead of one for tests. Only its hosts, ports and the place of its file of passwords, which is
   * beside it, are replaced.
   */
  configFile?: string;
}>;

export async function startPgBouncer(
  program: string,
  serverUrl: string,
  { configFile }: PgBouncerOptions = {},
): Promise<PgBouncer> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-pgbouncer-'));
  const listenPort = await freePort();
  const config = join(folder, 'pgbouncer.ini');
  const place = { server: new URL(serverUrl), listenPort, folder };
  await writeFile(config, configFile === undefined ? ownConfig(place) : await moveConfig(configFile, place));
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

type Place = Readonly<{ server: URL; listenPort: number; folder: string }>;

/** Few connections to the server, so that statements of one client go over different ones. */
function ownConfig({ server: { hostname, port, username, password }, listenPort }: Place): string {
  const login = `user=${decodeURIComponent(username)} password=${decodeURIComponent(password)}`;
  return [
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
  ].join('\n');
}

async function moveConfig(file: string, { server, listenPort, folder }: Place): Promise<string> {
  const authFile = join(folder, 'userlist.txt');
  await copyFile(join(dirname(file), 'userlist.txt'), authFile);
  const replacements: readonly (readonly [RegExp, string])[] = [
    [/(?<== )host=\S+ port=\d+$/m, `host=${server.hostname} port=${server.port}`],
    [/(?<=^listen_addr = ).*$/m, '127.0.0.1'],
    [/(?<=^listen_port = ).*$/m, String(listenPort)],
    [/(?<=^auth_file = ).*\/userlist\.txt$/m, authFile],
  ];
  let text = await readFile(file, 'utf8');
  for (const [pattern, replacement] of replacements) {
    if (!pattern.test(text)) throw new Error(`${file} has nothing that matches ${pattern}`);
    text = text.replace(pattern, () => replacement);
  }
  return text;
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
