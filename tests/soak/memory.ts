import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sleep } from '../../src/kernel/clock.ts';
import { unusedPort } from '../support/raw-server.ts';
import { startServeTraffic, type ServeTraffic } from './serve-traffic.ts';

/**
 * `node tests/soak/memory.ts dev|serve [minutes]`: runs the command in a process of its own, `dev` with its demo
 * traffic and `serve` under a steady load, and watches what is left of its memory after each garbage collection. It
 * fails when that still grows after the first 40 % of the time, in which caches fill up. Ten minutes by default.
 */
const [mode = 'dev', minutes = '10'] = process.argv.slice(2);

/** Before records owned their bytes, `dev` grew by 2.4 MB a minute. */
const maxGrowthMbPerMinute = 0.5;
const warmUpShare = 0.4;
/** The flags of `npm start`: V8 would let garbage pile up as long as the machine has memory. */
const flags = ['--max-semi-space-size=8', '--max-old-space-size=256'];
const program = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const reporter = new URL('tell-live-memory.ts', import.meta.url).href;

type Sample = Readonly<{ minute: number; residentMb: number; heapMb: number; externalMb: number }>;

process.exitCode = await main();

async function main(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-soak-'));
  const port = await unusedPort();
  const url = `http://127.0.0.1:${port}`;
  const traffic = mode === 'serve' ? await startServeTraffic(url) : null;
  const child = start(folder, port, traffic);
  try {
    await untilReady(url, child);
    const watching = watch(child, Number(minutes));
    await Promise.race([watching, traffic?.run() ?? watching]);
    return conclude(await watching);
  } finally {
    await traffic?.end();
    if (child.exitCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await traffic?.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function start(folder: string, port: number, traffic: ServeTraffic | null): ChildProcess {
  const env = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    PORT: String(port),
    DATABASE_DATA_DIR: join(folder, 'postgres'),
    LOG_LEVEL: 'warn',
    ...traffic?.env,
  };
  return spawn(process.execPath, [...flags, `--import=${reporter}`, program, mode], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  const isReady = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`${mode} ended with ${child.exitCode} before it was ready`);
    await sleep(200);
  }
}

async function watch(child: ChildProcess, forMinutes: number): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  const beganAt = performance.now();
  child.on('message', (told) => {
    const { rss, heapUsed, external } = told as NodeJS.MemoryUsage;
    samples.push({
      minute: (performance.now() - beganAt) / 60_000,
      residentMb: rss / 1e6,
      heapMb: heapUsed / 1e6,
      externalMb: external / 1e6,
    });
  });
  await sleep(forMinutes * 60_000);
  return samples;
}

function conclude(samples: readonly Sample[]): number {
  process.stdout.write('minute  resident MB  heap MB  external MB (medians)\n');
  const byMinute = Map.groupBy(samples, ({ minute }) => Math.floor(minute));
  for (const [minute, group] of byMinute) {
    const middle = (of: (sample: Sample) => number): string => median(group.map(of)).toFixed(1);
    const cells = [middle((s) => s.residentMb), middle((s) => s.heapMb), middle((s) => s.externalMb)];
    process.stdout.write(
      `${String(minute + 1).padStart(6)}  ${cells.map((c) => c.padStart(9)).join('  ')}\n`,
    );
  }
  const warm = samples.slice(Math.floor(samples.length * warmUpShare));
  const growth = slope(warm.map(({ minute, heapMb, externalMb }) => [minute, heapMb + externalMb]));
  const isFlat = growth <= maxGrowthMbPerMinute;
  process.stdout.write(
    `${isFlat ? 'FLAT' : 'GROWING'}: the live memory of ${mode} grows by ${growth.toFixed(2)} MB a minute ` +
      `(at most ${maxGrowthMbPerMinute})\n`,
  );
  return isFlat ? 0 : 1;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

/** By least squares. */
function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (of: (point: readonly [number, number]) => number): number =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [meanX, meanY] = [mean(([x]) => x), mean(([, y]) => y)];
  return mean(([x, y]) => (x - meanX) * (y - meanY)) / mean(([x]) => (x - meanX) ** 2);
}
