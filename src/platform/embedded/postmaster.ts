import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { open, readFile, readlink, rename, stat, unlink } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sleep, systemClock } from '../../kernel/clock.ts';
import { AppError, codeOf } from '../../kernel/errors.ts';
import { runAs } from './cluster.ts';
import type { DataHome } from './data-home.ts';
import type { NativeBinaries } from './native-binaries.ts';

const run = promisify(execFile);

const STOP_TIMEOUT_SECS = 20;
/** Recovery after a crash takes longer than a clean start. */
const START_TIMEOUT_MS = 60_000;
const READY_POLL_MS = 20;
const LOG_ROTATE_BYTES = 16 * 1024 * 1024;

export type Postmaster = Readonly<{
  pid: number;
  /** Resolves when the server has ended, for any reason. */
  exited: Promise<void>;
  stop(): Promise<void>;
}>;

/**
 * Another process may take the port between its choice and its use. A server that was killed leaves processes behind,
 * which hold its shared memory until they notice.
 */
export type StartOutcome = Readonly<
  | { outcome: 'ready'; postmaster: Postmaster }
  | { outcome: 'port_taken' }
  | { outcome: 'predecessor_running' }
>;

/**
 * Starts PostgreSQL and waits until it accepts connections. It runs in its own session, so that Ctrl-C in the terminal
 * reaches only us and we stop it in order. If our process ends without stopping it, even by SIGKILL, the watcher does.
 */
export async function startPostmaster(
  home: DataHome,
  binaries: NativeBinaries,
  settings: Readonly<Record<string, string>>,
): Promise<StartOutcome> {
  const log = await openLog(home.logFile);
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(join(binaries.folder, 'bin', 'postgres'), ['-D', home.cluster, ...flags], {
    ...runAs(home.account),
    detached: true,
    stdio: ['ignore', log.handle.fd, log.handle.fd],
  });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.on('error', () => child.pid === undefined && resolve());
  });
  await log.handle.close();
  const { pid } = child;
  if (pid !== undefined) watchOverUs(pid, home, exited);

  if (pid !== undefined && (await becomesReady(child, home.cluster))) {
    return {
      outcome: 'ready',
      postmaster: { pid, exited, stop: async () => stopChild(child, exited, home, binaries) },
    };
  }
  await stopChild(child, exited, home, binaries);
  const said = (await readFile(home.logFile)).subarray(log.startsAt).toString('utf8');
  if (said.includes('could not create any TCP/IP sockets')) return { outcome: 'port_taken' };
  if (said.includes('pre-existing shared memory block')) return { outcome: 'predecessor_running' };
  const reasons = said.split('\n').filter((line) => /FATAL|PANIC|error while loading/.test(line));
  throw new AppError(
    'SYS_EMBEDDED_START_FAILED',
    'unavailable',
    `The embedded PostgreSQL did not start: ${reasons.join(' ') || 'it gave no reason'}. Its log is ${home.logFile}.`,
  );
}

/**
 * Stops an orphaned server on this data folder; the caller has the folder's lock, so the server's owner has ended. Removes
 * a postmaster.pid whose process id now belongs to another program, because PostgreSQL would take that for a server and
 * refuse to start.
 */
export async function stopLeftover(home: DataHome, binaries: NativeBinaries): Promise<boolean> {
  const noteFile = join(home.cluster, 'postmaster.pid');
  const note = await readFile(noteFile, 'utf8').catch(() => '');
  const pid = Number.parseInt(note, 10);
  if (!(pid > 0) || !isAlive(pid)) return false;
  if (await worksIn(pid, home.cluster)) {
    await stopByControl(home, binaries);
    return true;
  }
  await unlink(noteFile).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
  });
  return false;
}

async function stopChild(
  child: ChildProcess,
  exited: Promise<void>,
  home: DataHome,
  binaries: NativeBinaries,
): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  // If the folder was deleted, only an immediate shutdown by signal works.
  await stopByControl(home, binaries).catch(() => child.kill('SIGQUIT'));
  await exited;
}

/** Fast shutdown: rolls back open transactions. */
async function stopByControl(home: DataHome, binaries: NativeBinaries): Promise<void> {
  const control = join(binaries.folder, 'bin', 'pg_ctl');
  const flags = ['stop', '-D', home.cluster, '-m', 'fast', '-w', '-t', String(STOP_TIMEOUT_SECS)];
  await run(control, flags, runAs(home.account));
}

/**
 * A shell that reads its input until our process ends, for any reason, and then requests a fast shutdown of the server. It
 * is killed when the server has ended, so that it never signals another process with the same id.
 */
function watchOverUs(pid: number, home: DataHome, exited: Promise<void>): void {
  if (process.platform === 'win32') return;
  const watcher = spawn('/bin/sh', ['-c', 'read _; kill -INT "$0"', String(pid)], {
    ...runAs(home.account),
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.on('error', () => {});
  watcher.unref();
  (watcher.stdin as Socket).unref();
  void exited.then(() => watcher.kill('SIGKILL'));
}

async function becomesReady(child: ChildProcess, cluster: string): Promise<boolean> {
  const giveUpAtMs = systemClock.monotonicMs() + START_TIMEOUT_MS;
  while (child.exitCode === null && child.signalCode === null && systemClock.monotonicMs() < giveUpAtMs) {
    const note = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
    const lines = note.split('\n');
    if (lines[0] === String(child.pid) && lines[7]?.trim() === 'ready') return true;
    await sleep(READY_POLL_MS);
  }
  return false;
}

async function openLog(logFile: string) {
  const size = await stat(logFile).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LOG_ROTATE_BYTES) await rename(logFile, `${logFile}.old`);
  return { handle: await open(logFile, 'a', 0o600), startsAt: size > LOG_ROTATE_BYTES ? 0 : size };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // A process of another account is not the server of our folder.
    return false;
  }
}

/** Whether the process is a PostgreSQL of this cluster: its working folder is the cluster's. */
async function worksIn(pid: number, cluster: string): Promise<boolean> {
  if (process.platform === 'linux') {
    return (await readlink(`/proc/${pid}/cwd`).catch(() => undefined)) === cluster;
  }
  // On Windows the stop request goes through a pipe that only a PostgreSQL has.
  if (process.platform === 'win32') return true;
  const { stdout } = await run('ps', ['-p', String(pid), '-o', 'command=']).catch(() => ({ stdout: '' }));
  return stdout.includes(cluster);
}
