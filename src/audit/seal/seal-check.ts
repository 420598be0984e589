import { minuteMs } from '../../kernel/duration.ts';
import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { oldestUnsealedMs } from './seal-round.ts';

/** As the alert AuditSealStale. */
const staleMs = 10 * minuteMs;

/** Whether somebody seals the audit log, this process or another one. */
export function createSealCheck(db: Queryable): HealthCheck {
  return {
    name: 'audit_seal',
    critical: false,
    async check() {
      const atMs = await oldestUnsealedMs(db);
      const ageMs = atMs === null ? 0 : Date.now() - atMs;
      if (ageMs <= staleMs) return { status: 'healthy' };
      const minutes = Math.floor(ageMs / minuteMs);
      const message = `events of the audit log have not been sealed for ${minutes} minutes: see the runbook AuditSealStale`;
      return { status: 'degraded', message };
    },
  };
}
