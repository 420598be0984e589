import type { Operations } from '../../../lib/server-shapes.ts';

type PlanInput = Operations['planRedrive']['input'];
export type Kind = NonNullable<PlanInput['kind']>;

export const kinds: readonly Kind[] = ['retry', 'reopen', 'dead', 'delete'];

/** What decides about a message of this kind, besides the right to plan. */
export const permissionOf: Readonly<Record<Exclude<Kind, 'retry'>, string>> = {
  reopen: 'dlq:messages:reopen',
  dead: 'dlq:messages:mark-dead',
  delete: 'dlq:messages:delete',
};

/** Everything as it stands in the inputs. */
export type PlanForm = Readonly<{
  kind: Kind;
  reason: string;
  /** Messages per second; empty: no limit. */
  rate: string;
  keepsOrder: boolean;
  reopens: boolean;
  hasCanary: boolean;
  stages: string;
  watchSeconds: string;
  stopPercent: string;
}>;

export type PlanField = 'reason' | 'rate' | 'stages' | 'watchSeconds' | 'stopPercent';

export const emptyPlan: PlanForm = {
  kind: 'retry',
  reason: '',
  rate: '50',
  keepsOrder: true,
  reopens: false,
  hasCanary: true,
  stages: '1, 5, 25',
  watchSeconds: '120',
  stopPercent: '10',
};

const maxStages = 20;
const maxReason = 1000;

/** What has to be put right before the plan can be made. */
export function findPlanProblems(form: PlanForm): readonly PlanField[] {
  const problems: PlanField[] = [];
  const { length } = form.reason.trim();
  if (length === 0 || length > maxReason) problems.push('reason');
  if (readRate(form.rate) === undefined) problems.push('rate');
  if (form.kind !== 'retry' || !form.hasCanary) return problems;
  if (readStages(form.stages) === null) problems.push('stages');
  if (!isWithin(form.watchSeconds, 1, 86_400)) problems.push('watchSeconds');
  if (!isWithin(form.stopPercent, 0, 99)) problems.push('stopPercent');
  return problems;
}

/** The body of the request. The form has no problems. */
export function planBody(form: PlanForm, filter: PlanInput['filter']): PlanInput {
  const shared = {
    kind: form.kind,
    filter,
    reason: form.reason.trim(),
    rate_per_second: readRate(form.rate) ?? null,
  };
  if (form.kind !== 'retry') return shared;
  return {
    ...shared,
    order: form.keepsOrder ? 'key' : 'none',
    reopen: form.reopens,
    canary: form.hasCanary
      ? {
          stages: readStages(form.stages) ?? [],
          watch_seconds: Number(form.watchSeconds),
          stop_percent: Number(form.stopPercent),
        }
      : null,
  };
}

/** Null: no limit. Undefined: not a rate. */
export function readRate(text: string): number | null | undefined {
  if (text.trim() === '') return null;
  return isWithin(text, 0.1, 100_000) ? Number(text) : undefined;
}

/** Ascending whole numbers with commas or spaces between them; null if they are something else. */
export function readStages(text: string): readonly number[] | null {
  const parts = text.split(/[\s,]+/).filter((part) => part !== '');
  if (parts.length === 0 || parts.length > maxStages || !parts.every((part) => /^\d{1,7}$/.test(part)))
    return null;
  const bounds = parts.map(Number);
  const isAscending = bounds.every((bound, i) => bound > (bounds[i - 1] ?? 0) && bound <= 1_000_000);
  return isAscending ? bounds : null;
}

function isWithin(text: string, least: number, most: number): boolean {
  const value = Number(text);
  return /^\s*\d{1,6}(\.\d{1,3})?\s*$/.test(text) && value >= least && value <= most;
}
