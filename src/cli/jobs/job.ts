import type { Column, Tone } from '../output/render-table.ts';
import { idInput, type ItemIds } from '../slice/item-id.ts';

export type Job = Readonly<{
  job_id: string;
  queue: string;
  payload: unknown;
  status: string;
  retry_count: number;
  max_retries: number;
  error_message: string | null;
  fingerprint: string | null;
  result: unknown;
  dedupe_key: string | null;
  priority: number;
  run_at: string | null;
  created_at: string | null;
  started_at: string | null;
  completed_at: string | null;
  resolution: string | null;
  needs_attention: boolean;
  deferrals: number;
  progress: unknown;
  trace: string | null;
  masked?: true;
  lease: Readonly<{ owner: string | null; until: string | null; epoch: number }> | null;
}>;

export const jobIds: ItemIds = { what: 'job', route: 'GET /api/v1/jobs/ids' };
export const jobId = idInput(jobIds);

export const statuses = ['pending', 'running', 'completed', 'failed', 'dead_letter'] as const;

const tones: Readonly<Record<string, Tone>> = {
  pending: 'strong',
  running: 'strong',
  completed: 'good',
  failed: 'doubtful',
  dead_letter: 'bad',
};

export function toneOf({ status }: Pick<Job, 'status'>): Tone {
  return tones[status] ?? 'strong';
}

/** `dead_letter (discarded)` */
export function statusOf({ status, resolution }: Pick<Job, 'status' | 'resolution'>): string {
  return resolution === null ? status : `${status} (${resolution})`;
}

export const statusColumn: Column<Job> = { title: 'STATUS', text: statusOf, tone: toneOf, minWidth: 11 };
