import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { relative, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { run } from 'node:test';
import { dot, junit, spec, tap } from 'node:test/reporters';
import { parseArgs } from 'node:util';

/**
 * Runs test files, each in a process of its own and in the order given, so that a long one does not start last and run
 * alone; `node --test` would sort them by name. It takes the options of `node --test` that are named here.
 */
const known = {
  'test-name-pattern': { type: 'string', multiple: true },
  'test-skip-pattern': { type: 'string', multiple: true },
  'test-only': { type: 'boolean' },
  'test-timeout': { type: 'string', default: '300000' },
  'test-concurrency': { type: 'string', default: '3' },
  'test-reporter': { type: 'string', default: 'spec' },
} as const;

export type TestOptions = ReturnType<typeof readOptions>['options'];

/** Throws for an option that is not known. */
export function readOptions(args: readonly string[]) {
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options: known });
  return { options: values, paths: positionals };
}

const slowestShown = 20;

/** Returns the exit code. */
export async function runTestFiles(
  files: readonly string[],
  options: TestOptions,
  signal: AbortSignal,
): Promise<number> {
  const seconds = new Map<string, number>();
  let isGood = false;
  const events = run({
    files: files.map((file) => resolve(file)),
    concurrency: Number(options['test-concurrency']),
    timeout: Number(options['test-timeout']),
    testNamePatterns: options['test-name-pattern'],
    testSkipPatterns: options['test-skip-pattern'],
    only: options['test-only'],
    signal,
  });
  events.on('test:summary', ({ file, duration_ms: ms, success }) => {
    if (file === undefined) isGood = success;
    else seconds.set(relative(process.cwd(), file), ms / 1000);
  });
  const reporter = options['test-reporter'];
  const output = reporter === 'spec' ? events.compose(new spec()) : events.compose(reporterOf(reporter));
  await pipeline(output, process.stdout, { end: false });
  if (files.length > slowestShown) showSlowest(seconds);
  return isGood ? 0 : 1;
}

function reporterOf(name: string) {
  switch (name) {
    case 'dot':
      return dot;
    case 'tap':
      return tap;
    case 'junit':
      return junit;
    default:
      throw new Error(`--test-reporter is spec, dot, tap or junit, not ${name}`);
  }
}

/** For test-order.ts. */
function showSlowest(seconds: ReadonlyMap<string, number>): void {
  const slowest = [...seconds].toSorted(([, a], [, b]) => b - a).slice(0, slowestShown);
  const lines = slowest.map(([file, s]) => `${s.toFixed(1).padStart(7)} s  ${file}\n`);
  process.stderr.write(`\nslowest files:\n${lines.join('')}`);
}

/** Unit tests share one process, which takes a tenth of the time. Returns the exit code. */
export async function runUnitTests(
  files: readonly string[],
  options: TestOptions,
  signal: AbortSignal,
): Promise<number> {
  const flags = Object.entries(options).flatMap(([name, value]) =>
    [value].flat().map((one) => (one === true ? `--${name}` : `--${name}=${one}`)),
  );
  const child = spawn(process.execPath, ['--test', '--test-isolation=none', ...flags, ...files], {
    stdio: 'inherit',
    signal,
  });
  // An abort is an error of the process.
  const [code] = (await once(child, 'exit').catch(() => [1])) as [number | null];
  return code ?? 1;
}
