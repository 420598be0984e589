import type { Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';

export type Health = 'healthy' | 'degraded' | 'unhealthy';
export type CheckResult = Readonly<{ status: Health; message?: string }>;

export type HealthCheck = Readonly<{
  name: string;
  /** Without it the process is of no use: only then may an unhealthy check take the replica out of service. */
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
  timeoutMs?: number;
  /** For this long a report is given again, so that a storm of probes costs the database one round of checks. */
  keepForMs?: number;
}>;

export function createReadiness(options: ReadinessOptions): () => Promise<ReadinessReport> {
  const { checks, clock, timeoutMs = 1000, keepForMs = 500 } = options;
  const runners = checks.map((check) => ({ check, run: boundedCheck(check, timeoutMs) }));
  let latest: Promise<ReadinessReport> | undefined;
  let freshUntilMs = Number.NEGATIVE_INFINITY;

  async function makeReport(): Promise<ReadinessReport> {
    const results = await Promise.all(
      runners.map(async ({ check, run }) => ({ check, result: await run() })),
    );
    freshUntilMs = clock.monotonicMs() + keepForMs;
    return {
      status: overallHealth(results),
      checks: Object.fromEntries(results.map(({ check, result }) => [check.name, result])),
      timestamp: formatTimestamp(clock.now()),
    };
  }

  return () => {
    if (latest === undefined || clock.monotonicMs() >= freshUntilMs) {
      // Until this report is made everybody who asks waits for it; its age counts from its end.
      freshUntilMs = Number.POSITIVE_INFINITY;
      latest = makeReport();
    }
    return latest;
  };
}

/** Answers in time whatever the check does; one that still hangs is not started a second time beside itself. */
function boundedCheck(check: HealthCheck, timeoutMs: number): () => Promise<CheckResult> {
  let running: Promise<CheckResult> | undefined;
  return async () => {
    const signal = AbortSignal.timeout(timeoutMs);
    running ??= runCheck(check, signal).finally(() => {
      running = undefined;
    });
    return Promise.race([running, noAnswer(signal, timeoutMs)]);
  };
}

async function runCheck(check: HealthCheck, signal: AbortSignal): Promise<CheckResult> {
  try {
    return await check.check(signal);
  } catch (error) {
    return { status: 'unhealthy', message: messageOf(error) };
  }
}

function noAnswer(signal: AbortSignal, timeoutMs: number): Promise<CheckResult> {
  return new Promise((resolve) => {
    signal.addEventListener(
      'abort',
      () => resolve({ status: 'unhealthy', message: `no answer within ${timeoutMs} ms` }),
      { once: true },
    );
  });
}

function overallHealth(results: readonly Readonly<{ check: HealthCheck; result: CheckResult }>[]): Health {
  if (results.some(({ check, result }) => check.critical && result.status === 'unhealthy'))
    return 'unhealthy';
  return results.every(({ result }) => result.status === 'healthy') ? 'healthy' : 'degraded';
}
