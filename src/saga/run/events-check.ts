import type { HealthCheck } from '../../platform/http/readiness.ts';

/** Reports events that the broker refuses. */
export function eventsCheck(hasDeadEvents: () => Promise<boolean>): HealthCheck {
  return {
    name: 'saga_events',
    critical: false,
    async check() {
      return (await hasDeadEvents())
        ? { status: 'degraded', message: 'saga events were refused and block those after them' }
        : { status: 'healthy' };
    },
  };
}
