import type { HealthCheck } from '../../platform/http/readiness.ts';

/** An event that the broker refuses cannot be told of by another event: readiness says it. */
export function eventsCheck(hasDeadEvents: () => Promise<boolean>): HealthCheck {
  return {
    name: 'saga_events',
    critical: false,
    async check() {
      return (await hasDeadEvents())
        ? { status: 'degraded', message: 'events of sagas were refused, and hold back those behind them' }
        : { status: 'healthy' };
    },
  };
}
