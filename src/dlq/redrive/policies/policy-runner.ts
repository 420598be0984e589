import { sleep } from '../../../kernel/clock.ts';
import type { Service } from '../../../kernel/service.ts';
import { createNamedLease } from '../../../platform/work/named-lease.ts';
import type { Worker } from '../../../platform/work/work.ts';
import { nextStep } from '../../domain/retry-policy.ts';
import { listWorkingPolicies } from './policies-table.ts';
import { takeStep, type RoundDeps } from './policy-round.ts';
import { scheduleMessages, type ScheduleDeps } from './schedule-messages.ts';
import { syncPolicies } from './sync-policies.ts';

export type PolicyRunnerDeps = RoundDeps &
  ScheduleDeps &
  Readonly<{
    worker: Worker;
    onSynced: (policies: readonly string[]) => void;
    onError: (error: unknown) => void;
  }>;

/** At most this share of the time goes to looking for messages to schedule. */
const share = 0.05;
/** A tenth of the shortest delay, within these bounds. */
const pollMs = { least: 500, most: 5000, withoutPolicies: 30_000 } as const;

/**
 * Looks after the retry policies: schedules messages, and takes the steps of each policy. One process does it at a time,
 * the one that has the lease; its configuration counts.
 */
export function createPolicyRunner(deps: PolicyRunnerDeps): Service {
  return createNamedLease(deps.worker, {
    name: 'dlq.policies',
    work: (leased, beat) => lookAfter(deps, leased, beat),
    onError: deps.onError,
  });
}

async function lookAfter(deps: PolicyRunnerDeps, leased: AbortSignal, beat: () => void): Promise<void> {
  const { db, worker, policies } = deps;
  const { isChanged } = await syncPolicies(db, [...policies.values()], leased);
  if (isChanged) deps.onSynced([...policies.keys()]);
  let scheduleAtMs = -Infinity;
  while (!leased.aborted) {
    const startMs = worker.clock.monotonicMs();
    if (policies.size > 0 && startMs >= scheduleAtMs) {
      await scheduleMessages(deps, [...policies.values()], leased);
      const endMs = worker.clock.monotonicMs();
      scheduleAtMs = endMs + (endMs - startMs) / share;
    }
    const isOpen = await stepAll(deps);
    beat();
    await sleep(restMs(deps, isOpen), leased);
  }
}

/** Whether a policy has an open round. */
async function stepAll(deps: PolicyRunnerDeps): Promise<boolean> {
  const rows = await listWorkingPolicies(deps.db);
  for (const row of rows) {
    const step = nextStep(row);
    if (step !== 'wait' && (step !== 'make' || row.hasDue)) await takeStep(deps, row.name);
  }
  return rows.some(({ redriveId }) => redriveId !== null);
}

function restMs({ policies }: PolicyRunnerDeps, isOpen: boolean): number {
  if (policies.size === 0) return isOpen ? pollMs.most : pollMs.withoutPolicies;
  const shortest = Math.min(...[...policies.values()].map(({ delayMs }) => delayMs / 10));
  return Math.min(pollMs.most, Math.max(pollMs.least, shortest));
}
