import { hasEnded } from '../../domain/redrive.ts';
import { watchSecondsLeft } from '../../domain/canary.ts';
import { itemOutcomes } from '../../domain/redrive-item.ts';
import type { Masks } from '../../../kernel/protect/protection.ts';
import { timestamp, type Json } from '../../present.ts';
import type { RedriveProgress } from './follow/redrive-events.ts';
import type { Progress, Redrive, RedriveItem } from './read-redrives.ts';
import type { RedriveFilter, RedriveOptions } from './redrives-table.ts';

/** The redrive without what has to be counted. */
export function presentRedrive(redrive: Redrive, masks: Masks): Json {
  const { plan, receipt } = redrive;
  return {
    id: redrive.id,
    kind: redrive.kind,
    state: redrive.state,
    state_reason: masks.text(redrive.stateReason),
    filter: presentFilter(redrive.filter, masks),
    reason: masks.text(redrive.reason),
    actor: redrive.actor,
    started_by: redrive.startedBy,
    approval: presentApproval(redrive),
    policy: redrive.policy,
    frozen_at: timestamp(redrive.frozenAt),
    options: redrive.options,
    stage: shownStage(redrive),
    watch_until: timestamp(redrive.watchUntil),
    waiting_for: redrive.waitingFor,
    owner: redrive.owner,
    selected: receipt?.counts.selected ?? plan?.selected ?? 0,
    created_at: timestamp(redrive.createdAt),
    started_at: timestamp(redrive.startedAt),
    finished_at: timestamp(redrive.finishedAt),
    receipt,
  };
}

function presentApproval({ approval }: Redrive): Json | null {
  return approval === null ? null : { ...approval, at: timestamp(new Date(approval.at)) };
}

/** The stage behind the last one means that its window has closed. */
function shownStage({ stage, options }: Redrive): number | null {
  return stage === null ? null : Math.min(stage, (options.canary?.stages.length ?? 0) + 1);
}

/** The texts of a filter say what payloads and keys say. */
function presentFilter(filter: RedriveFilter, masks: Masks): Json {
  const { text, key, error_class: errorClass } = filter;
  return {
    ...filter,
    ...(text === undefined ? {} : { text: masks.text(text) }),
    ...(key === undefined ? {} : { key: masks.key(Buffer.from(key)).toString() }),
    ...(errorClass === undefined ? {} : { error_class: masks.text(errorClass) }),
  };
}

/** `selected` is the sum of the other counts but `excluded`. */
export function presentWholeRedrive(redrive: Redrive, progress: Progress, masks: Masks): Json {
  const { plan, options, state } = redrive;
  const {
    selected: _,
    receipt,
    created_at,
    started_at,
    finished_at,
    ...about
  } = presentRedrive(redrive, masks);
  const { waiting, in_flight } = progress;
  const ended = Object.fromEntries(itemOutcomes.map((outcome) => [outcome, progress[outcome]]));
  const selected = itemOutcomes.reduce((sum, outcome) => sum + progress[outcome], waiting + in_flight);
  const excluded = (plan?.excluded ?? []).reduce((sum, { count }) => sum + count, 0);
  const rate = state === 'running' ? progress.perSecond : null;
  return {
    ...about,
    counts: {
      selected,
      excluded,
      waiting,
      in_flight,
      quiet: progress.quiet,
      ...ended,
      published: progress.published - progress.quiet,
    },
    came_back_after: progress.cameBackAfter,
    excluded: plan?.excluded ?? [],
    overlaps: plan?.overlaps ?? [],
    targets: plan?.targets ?? [],
    groups_error: plan?.groups_error ?? null,
    fingerprints: plan?.fingerprints ?? [],
    keys: plan?.keys ?? null,
    sample_ids: plan?.sample_ids ?? [],
    rate_now: rate,
    eta_seconds:
      hasEnded(state) || state === 'paused' || state === 'stopped'
        ? null
        : Math.ceil(waiting / expectedRate(rate, options)) + watchSeconds(redrive, selected),
    created_at,
    started_at,
    finished_at,
    receipt,
  };
}

/** Without what has passed of a window. */
function watchSeconds({ stage, options: { canary = null } }: Redrive, selected: number): number {
  return canary === null ? 0 : watchSecondsLeft(canary, stage ?? 1, selected);
}

/** What changes while it runs. */
export function presentProgress(redrive: Redrive, progress: Progress, masks: Masks): RedriveProgress & Json {
  const whole = presentWholeRedrive(redrive, progress, masks);
  const { id, state_reason, stage, watch_until, waiting_for, owner, counts, came_back_after } = whole;
  const { rate_now, eta_seconds, finished_at } = whole;
  const { state, receipt } = redrive;
  const canary = { stage, watch_until, waiting_for, came_back_after };
  return { id, state, state_reason, owner, ...canary, counts, rate_now, eta_seconds, finished_at, receipt };
}

/** What a redrive without a limit does on two cores; the broker and the database may do more or less. */
const unlimitedPerSecond = 2000;

function expectedRate(measured: number | null, { rate_per_second: limit }: RedriveOptions): number {
  return measured === null || measured <= 0 ? (limit ?? unlimitedPerSecond) : measured;
}

export function presentItem(item: RedriveItem, masks: Masks): Json {
  return {
    position: item.position,
    message_id: item.messageId,
    target: item.target,
    outcome: item.outcome ?? (item.isInFlight ? 'in_flight' : 'waiting'),
    attempt: item.attemptNo,
    partition: item.partition,
    offset: item.offset,
    reason: masks.text(item.reason),
    settled_at: timestamp(item.settledAt),
  };
}
