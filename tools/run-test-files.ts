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
/** More failures than these are no accident of a busy machine. */
const mostRepeated = 6;

/** Returns the exit code. */
export async function runTestFiles(
  files: readonly string[],
  options: TestOptions,
  signal: AbortSignal,
): Promise<number> {
  const first = await runOnce(files, options, signal);
  if (files.length > slowestShown) showSlowest(first.seconds);
  if (first.isGood) return 0;
  if (process.env['CI'] !== 'true' || signal.aborted) return 1;
  return repeatAlone(first.failed, options, signal);
}

/**
 * Tests that kill and pause processes share two cores with others, and some have failed there although nothing is
 * wrong. In CI a file that failed runs once more, alone; what fails then has failed. See decision 0117.
 */
async function repeatAlone(
  failed: readonly string[],
  options: TestOptions,
  signal: AbortSignal,
): Promise<number> {
  if (failed.length === 0 || failed.length > mostRepeated) return 1;
  process.stderr.write(`\n${failed.length} test files failed; running them once more, one at a time\n`);
  const again = await runOnce(failed, { ...options, 'test-concurrency': '1' }, signal);
  for (const file of failed.filter((each) => !again.failed.includes(each)))
    process.stderr.write(`*** FAILED ONCE, AND PASSED WHEN IT RAN ALONE: ${file} ***\n`);
  return again.isGood && again.failed.length === 0 ? 0 : 1;
}

type Run = Readonly<{ isGood: boolean; failed: readonly string[]; seconds: ReadonlyMap<string, number> }>;

async function runOnce(files: readonly string[], options: TestOptions, signal: AbortSignal): Promise<Run> {
  const seconds = new Map<string, number>();
  const passed = new Set<string>();
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
    if (file === undefined) {
      isGood = success;
      return;
    }
    const path = relative(process.cwd(), file);
    seconds.set(path, ms / 1000);
    if (success) passed.add(path);
  });
  const reporter = options['test-reporter'];
  const output = reporter === 'spec' ? events.compose(new spec()) : events.compose(reporterOf(reporter));
  await pipeline(output, process.stdout, { end: false });
  // A process that ended without a summary has not passed.
  return { isGood, failed: files.filter((file) => !passed.has(relative('.', file))), seconds };
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
