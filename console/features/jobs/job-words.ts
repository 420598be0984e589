import type { Job } from '../../lib/server-shapes.ts';

/** What a list shows of a job. */
export type ListedJob = Pick<
  Job,
  | 'job_id'
  | 'queue'
  | 'status'
  | 'retry_count'
  | 'max_retries'
  | 'error_message'
  | 'dedupe_key'
  | 'run_at'
  | 'created_at'
  | 'started_at'
  | 'completed_at'
  | 'resolution'
  | 'needs_attention'
>;

/** The fields that a list asks for: payloads and results are most of a job. */
export const listedFields = [
  'queue',
  'status',
  'retry_count',
  'max_retries',
  'error_message',
  'dedupe_key',
  'run_at',
  'created_at',
  'started_at',
  'completed_at',
  'resolution',
  'needs_attention',
] as const satisfies readonly (keyof ListedJob)[];

/** A dead letter that somebody has dealt with is shown as what was done with it. */
export function shownStatus({ status, resolution }: Pick<Job, 'status' | 'resolution'>): string {
  return status === 'dead_letter' ? (resolution ?? status) : status;
}

/** The dedupe key says more than an id, where there is one. */
export function nameOf({ job_id: id, dedupe_key: key }: Pick<Job, 'job_id' | 'dedupe_key'>): string {
  return key ?? shortId(id);
}

/** Ids of one moment begin alike; their ends do not. */
export function shortId(id: string): string {
  return `${id.slice(0, 8)}…${id.slice(-4)}`;
}

/** When it is due, was started or ended: whichever is the newest that is known. */
export function lastEvent({
  run_at: runAt,
  started_at: startedAt,
  completed_at: endedAt,
}: ListedJob): string | null {
  return endedAt ?? runAt ?? startedAt;
}

/** How long the last attempt took, or takes until now; null if it is not known. */
export function durationMs(
  { status, started_at: startedAt, completed_at: endedAt }: ListedJob,
  now: number,
): number | null {
  if (startedAt === null || status === 'pending' || status === 'failed') return null;
  const end = endedAt === null ? now : Date.parse(endedAt);
  return Math.max(0, end - Date.parse(startedAt));
}

/** Short ones in milliseconds: most jobs take less than a second. */
export function durationText(ms: number, formatLonger: (ms: number) => string): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : formatLonger(ms);
}
