import type { HealthCheck } from '../../../platform/http/readiness.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import type { Metrics } from '../../../platform/telemetry/metrics.ts';
import type { Gauges } from '../../../platform/work/gauges.ts';
import { roundResults, type RoundResult } from './policy-round.ts';
import { listPolicies } from './read-policies.ts';

/** After this many outages or failed plans in a row a policy is a trouble of its own. */
const manyFailures = 3;
const maxListed = 3;

/** Degraded while a configured policy is disabled, or cannot make a redrive. */
export function policyCheck(db: Queryable): HealthCheck {
  return {
    name: 'dlq_policies',
    critical: false,
    async check() {
      const rows = await db.query<Readonly<{ name: string; state: string; why: string | null }>>(sql`
        SELECT name, state, CASE WHEN state = 'disabled' THEN state_reason ELSE last_result END AS why
        FROM dlq.retry_policies
        WHERE place IS NOT NULL AND (state = 'disabled' OR (state = 'active' AND failures >= ${manyFailures}))
        ORDER BY place LIMIT ${maxListed}`);
      if (rows.length === 0) return { status: 'healthy' };
      const troubles = rows.map(
        ({ name, state, why }) =>
          `retry policy ${name} ${state === 'disabled' ? 'is disabled' : 'fails'}: ${why ?? 'no reason noted'}`,
      );
      return { status: 'degraded', message: troubles.join('; ') };
    },
  };
}

export function policyGauges(metrics: Metrics, db: Queryable): Gauges {
  const gauge = (name: string, help: string) => metrics.gauge({ name, help, labelNames: ['policy'] });
  const gauges = {
    active: gauge(
      'dlq_policy_active',
      '1 if the retry policy works, 0 if it is paused or disabled; exported by one replica.',
    ),
    waiting: gauge(
      'dlq_policy_waiting_messages',
      'Messages that the policy will retry, counted up to 10 000; exported by one replica.',
    ),
    due: gauge(
      'dlq_policy_due_messages',
      'Those of them that are due, counted up to 10 000; exported by one replica.',
    ),
  };
  return {
    gauges: Object.values(gauges),
    async measure() {
      const policies = (await listPolicies(db)).filter(({ isConfigured }) => isConfigured);
      return () => {
        for (const { name, state, waiting, due } of policies) {
          gauges.active.set({ policy: name }, state === 'active' ? 1 : 0);
          gauges.waiting.set({ policy: name }, waiting);
          gauges.due.set({ policy: name }, due);
        }
      };
    },
  };
}

/** Counts what this process does for the policies. */
export function countRounds(
  metrics: Metrics,
  policies: Iterable<string>,
): (policy: string, result: RoundResult) => void {
  const rounds = metrics.counter({
    name: 'dlq_policy_rounds_total',
    help: 'Rounds of retry policies, by what happened.',
    labelNames: ['policy', 'result'],
  });
  for (const policy of policies) for (const result of roundResults) rounds.inc({ policy, result }, 0);
  return (policy, result) => rounds.inc({ policy, result });
}
