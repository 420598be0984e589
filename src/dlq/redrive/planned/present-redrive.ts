import { itemOutcomes } from '../../domain/redrive-item.ts';
import { timestamp, type Json } from '../../present.ts';
import type { Progress, Redrive, RedriveItem } from './read-redrives.ts';

/** The redrive without what has to be counted. */
export function presentRedrive(redrive: Redrive): Json {
  const { plan, receipt } = redrive;
  return {
    id: redrive.id,
    state: redrive.state,
    state_reason: redrive.stateReason,
    filter: redrive.filter,
    reason: redrive.reason,
    actor: redrive.actor,
    frozen_at: timestamp(redrive.frozenAt),
    options: redrive.options,
    selected: receipt?.counts.selected ?? plan?.selected ?? 0,
    created_at: timestamp(redrive.createdAt),
    started_at: timestamp(redrive.startedAt),
    finished_at: timestamp(redrive.finishedAt),
    receipt,
  };
}

/** `selected` is the sum of the other counts but `excluded`. */
export function presentWholeRedrive(redrive: Redrive, progress: Progress): Json {
  const { plan, options, state } = redrive;
  const { selected: _, receipt, created_at, started_at, finished_at, ...about } = presentRedrive(redrive);
  const { waiting, in_flight } = progress;
  const ended = Object.fromEntries(itemOutcomes.map((outcome) => [outcome, progress[outcome]]));
  const selected = itemOutcomes.reduce((sum, outcome) => sum + progress[outcome], waiting + in_flight);
  const excluded = (plan?.excluded ?? []).reduce((sum, { count }) => sum + count, 0);
  const rate = state === 'running' ? progress.perSecond : null;
  return {
    ...about,
    counts: { selected, excluded, waiting, in_flight, quiet: 0, ...ended },
    excluded: plan?.excluded ?? [],
    targets: plan?.targets ?? [],
    rate_now: rate,
    eta_seconds: estimateSeconds(waiting, rate === null || rate === 0 ? options.rate_per_second : rate),
    created_at,
    started_at,
    finished_at,
    receipt,
  };
}

function estimateSeconds(waiting: number, perSecond: number | null): number | null {
  return perSecond === null || perSecond <= 0 ? null : Math.ceil(waiting / perSecond);
}

export function presentItem(item: RedriveItem): Json {
  return {
    position: item.position,
    message_id: item.messageId,
    target: item.target,
    outcome: item.outcome ?? (item.isInFlight ? 'in_flight' : 'waiting'),
    attempt: item.attemptNo,
    partition: item.partition,
    offset: item.offset,
    reason: item.reason,
    settled_at: timestamp(item.settledAt),
  };
}
