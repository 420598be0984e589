import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '../../kernel/clock.ts';
import { createReadiness } from './readiness.ts';
import type { CheckResult, Health, HealthCheck } from './readiness.ts';
import { createTestServer } from '../../../tests/support/test-server.ts';

function manualClock(): Clock & { advance(ms: number): void } {
  let elapsedMs = 0;
  return {
    now: () => new Date(Date.UTC(2026, 1, 20, 10, 30) + elapsedMs),
    monotonicMs: () => elapsedMs,
    advance: (ms) => {
      elapsedMs += ms;
    },
  };
}

const always = (name: string, critical: boolean, status: Health): HealthCheck => ({
  name,
  critical,
  check: async () => ({ status }),
});

const overall = async (...checks: HealthCheck[]) =>
  (await createReadiness({ checks, clock: manualClock() })()).status;

async function statusFor(check: HealthCheck): Promise<number> {
  const { server } = createTestServer({ checks: [check] });
  return (await server.app.inject('/readyz')).statusCode;
}

test('only a critical check can make the process unhealthy', async () => {
  assert.equal(await overall(), 'healthy');
  assert.equal(await overall(always('database', true, 'healthy')), 'healthy');
  assert.equal(await overall(always('database', true, 'unhealthy')), 'unhealthy');
  assert.equal(await overall(always('broker', false, 'unhealthy')), 'degraded');
  assert.equal(await overall(always('database', true, 'degraded')), 'degraded');
});

test('a check that throws is unhealthy with its message', async () => {
  const check = { name: 'database', critical: true, check: () => Promise.reject(new Error('refused')) };
  const report = await createReadiness({ checks: [check], clock: manualClock() })();
  assert.deepEqual(report, {
    status: 'unhealthy',
    checks: { database: { status: 'unhealthy', message: 'refused' } },
    timestamp: '2026-02-20T10:30:00.000+00:00',
  });
});

test('many probes at once cost one round of checks, a later probe another', async () => {
  const clock = manualClock();
  let rounds = 0;
  const check = async (): Promise<CheckResult> => {
    rounds += 1;
    return { status: 'healthy' };
  };
  const readiness = createReadiness({ checks: [{ name: 'database', critical: true, check }], clock });
  await Promise.all(Array.from({ length: 100 }, readiness));
  clock.advance(499);
  await readiness();
  assert.equal(rounds, 1);
  clock.advance(1);
  await readiness();
  assert.equal(rounds, 2);
});

test('a check that hangs times out and is not started again', async () => {
  const clock = manualClock();
  const keepAlive = setInterval(() => {}, 1000);
  let started = 0;
  let wasAborted = false;
  const check = (signal: AbortSignal): Promise<CheckResult> => {
    started += 1;
    signal.addEventListener('abort', () => {
      wasAborted = true;
    });
    return new Promise(() => {});
  };
  const readiness = createReadiness({
    checks: [{ name: 'database', critical: true, check }],
    clock,
    timeoutMs: 20,
  });
  assert.deepEqual((await readiness()).checks, {
    database: { status: 'unhealthy', message: 'timed out after 20 ms' },
  });
  clock.advance(1000);
  assert.equal((await readiness()).status, 'unhealthy');
  assert.equal(started, 1);
  assert.equal(wasAborted, true);
  clearInterval(keepAlive);
});

test('readiness is 503 only if unhealthy', async () => {
  assert.equal(await statusFor(always('broker', false, 'unhealthy')), 200);
  assert.equal(await statusFor(always('database', true, 'unhealthy')), 503);
});
