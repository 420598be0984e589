import type { Service } from '../../../kernel/service.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import type { HealthCheck } from '../../../platform/http/readiness.ts';
import type { Logger } from '../../../platform/telemetry/logger.ts';
import type { Metrics } from '../../../platform/telemetry/metrics.ts';
import { createGauges } from '../../../platform/work/gauges.ts';
import type { Worker } from '../../../platform/work/work.ts';
import type { RetryPolicy } from './policies-table.ts';
import { countRounds, policyCheck, policyGauges } from './policy-health.ts';
import { createPolicyRunner } from './policy-runner.ts';

export type PoliciesDeps = Readonly<{
  db: Database;
  worker: Worker;
  metrics: Metrics;
  log: Logger;
  makeId: () => string;
  isDeadLetterTopic: (topic: string) => boolean;
}>;

export type Policies = Readonly<{ services: readonly Service[]; checks: readonly HealthCheck[] }>;

/** Of one round: so many messages are planned, and left to the next round by a cancel. */
const maxMessages = 10_000;

/** What looks after the retry policies. Without policies it only takes back what former ones have scheduled. */
export function createPolicies(deps: PoliciesDeps, configured: readonly RetryPolicy[]): Policies {
  const { db, worker, metrics, log } = deps;
  const policies = new Map(configured.map((policy) => [policy.name, policy]));
  const count = countRounds(metrics, policies.keys());
  const runner = createPolicyRunner({
    ...deps,
    policies,
    maxMessages,
    onRound(policy, result) {
      count(policy, result);
      if (result === 'outage' || result === 'failed' || result === 'disabled')
        log.warn({ policy, result }, 'retry policy failed to send');
    },
    onSynced: (names) => log.info({ policies: names }, 'changed retry policies; scheduling messages again'),
    onError: (error) => log.warn({ err: error }, 'retry policies failed; trying again'),
  });
  if (policies.size === 0) return { services: [runner], checks: [] };
  const gauges = createGauges(worker, { name: 'dlq.policy_gauges', ...policyGauges(metrics, db), log });
  return { services: [runner, gauges], checks: [policyCheck(db)] };
}
