import type { Tone } from '../output/printer.ts';

/** A saga as the API tells of it. */
export type Saga = Readonly<{
  saga_id: string;
  workflow_name: string;
  current_step: number;
  status: string;
  payload: unknown;
  correlation_id: string | null;
  initiated_by: string | null;
  error_message: string | null;
  created_at: string | null;
  updated_at: string | null;
  compensation: string;
  needs_person: boolean;
  deadline_at: string | null;
  definition_hash: string | null;
  stuck?: Readonly<{ step: string | null; action: string; reason: string }>;
}>;

export const statuses = ['STARTED', 'RUNNING', 'COMPLETED', 'COMPENSATING', 'FAILED', 'CANCELLED'] as const;

const tones: Readonly<Record<string, Tone>> = {
  STARTED: 'strong',
  RUNNING: 'strong',
  COMPLETED: 'good',
  COMPENSATING: 'doubtful',
  FAILED: 'bad',
  CANCELLED: 'doubtful',
};

export function toneOf(status: string): Tone {
  return tones[status] ?? 'strong';
}

/** `RUNNING (needs a person)`: what does not go on by itself says so beside the status. */
export function statusOf({ status, needs_person }: Pick<Saga, 'status' | 'needs_person'>): string {
  return needs_person ? `${status} (needs a person)` : status;
}
