import type { Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';

export type Health = 'healthy' | 'degraded' | 'unhealthy';
export type CheckResult = Readonly<{ status: Health; message?: string }>;

export type HealthCheck = Readonly<{
  name: string;
  /** The process cannot work without it. Only a critical check can make the replica unhealthy. */
  critical: boolean;
  check(signal: AbortSignal): Promise<CheckResult>;
}>;

export type ReadinessReport = Readonly<{
  status: Health;
  checks: Readonly<Record<string, CheckResult>>;
  timestamp: string;
}>;

export type ReadinessOptions = Readonly<{
  checks: readonly HealthCheck[];
  clock: Clock;
  /** Covers what is protected in a message. */
  cover?: (text: string) => string;
  timeoutMs?: number;
  /** How long a report is cached, so that many probes cost the database one round of checks. */
  cacheMs?: number;
}>;

export function createReadiness(options: ReadinessOptions): () => Promise<ReadinessReport> {
  const { checks, clock, cover = (text) => text, timeoutMs = 1000, cacheMs = 500 } = options;
  const runners = checks.map((check) => ({ check, run: boundedCheck(check, timeoutMs) }));
  let latest: Promise<ReadinessReport> | undefined;
  let freshUntilMs = Number.NEGATIVE_INFINITY;

  async function makeReport(): Promise<ReadinessReport> {
    const results = await Promise.all(
      runners.map(async ({ check, run }) => ({ check, result: await run() })),
    );
    freshUntilMs = clock.monotonicMs() + cacheMs;
    return {
      status: overallHealth(results),
      checks: Object.fromEntries(results.map(({ check, result }) => [check.name, covered(result, cover)])),
      timestamp: formatTimestamp(clock.now()),
    };
  }

  return () => {
    if (latest === undefined || clock.monotonicMs() >= freshUntilMs) {
      // All callers wait for the running report; its age counts from its end.
      freshUntilMs = Number.POSITIVE_INFINITY;
      latest = makeReport();
    }
    return latest;
  };
}

function covered({ status, message }: CheckResult, cover: (text: string) => string): CheckResult {
  return message === undefined ? { status } : { status, message: cover(message) };
}

/** Times out a check that hangs. A check that still runs is not started again. */
function boundedCheck(check: HealthCheck, timeoutMs: number): () => Promise<CheckResult> {
  let running: Promise<CheckResult> | undefined;
  return async () => {
    const signal = AbortSignal.timeout(timeoutMs);
    running ??= runCheck(check, signal).finally(() => {
      running = undefined;
    });
    return Promise.race([running, timeoutOf(signal, timeoutMs)]);
  };
}

async function runCheck(check: HealthCheck, signal: AbortSignal): Promise<CheckResult> {
  try {
    return await check.check(signal);
  } catch (error) {
    return { status: 'unhealthy', message: messageOf(error) };
  }
}

function timeoutOf(signal: AbortSignal, timeoutMs: number): Promise<CheckResult> {
  return new Promise((resolve) => {
    signal.addEventListener(
      'abort',
      () => resolve({ status: 'unhealthy', message: `timed out after ${timeoutMs} ms` }),
      { once: true },
    );
  });
}

function overallHealth(results: readonly Readonly<{ check: HealthCheck; result: CheckResult }>[]): Health {
  if (results.some(({ check, result }) => check.critical && result.status === 'unhealthy'))
    return 'unhealthy';
  return results.every(({ result }) => result.status === 'healthy') ? 'healthy' : 'degraded';
}
