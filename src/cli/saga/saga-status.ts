import type { Column, Tone } from '../output/render-table.ts';
import { idInput, type ItemIds } from '../slice/item-id.ts';

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
  needs_attention: boolean;
  deadline_at: string | null;
  definition_hash: string | null;
  fingerprint: string | null;
  masked?: true;
  stuck?: Readonly<{ step: string | null; action: string; reason: string }>;
  /** Older servers do not send the rest. */
  steps?: readonly SagaStep[] | null;
  next_attempt_at?: string | null;
  trace_id?: string | null;
  created_by?: string | null;
}>;

/** A step of the saga's definition, and its outcome so far. */
export type SagaStep = Readonly<{
  name: string;
  state: string;
  service: string;
  method: string;
  compensate: string | null;
  pivot: boolean;
}>;

export const sagaIds: ItemIds = { what: 'saga', route: 'GET /api/v1/sagas/ids' };
export const sagaId = idInput(sagaIds);

export const statuses = ['STARTED', 'RUNNING', 'COMPLETED', 'COMPENSATING', 'FAILED', 'CANCELLED'] as const;

const tones: Readonly<Record<string, Tone>> = {
  STARTED: 'strong',
  RUNNING: 'strong',
  COMPLETED: 'good',
  COMPENSATING: 'doubtful',
  FAILED: 'bad',
  CANCELLED: 'doubtful',
};

export function toneOf({ status, needs_attention = false }: Pick<Saga, 'status'> & Partial<Saga>): Tone {
  return needs_attention ? 'bad' : (tones[status] ?? 'strong');
}

/** `RUNNING (needs attention)` */
export function statusOf({ status, needs_attention }: Saga): string {
  return needs_attention ? `${status} (needs attention)` : status;
}

export const statusColumn: Column<Saga> = { title: 'STATUS', text: statusOf, tone: toneOf, minWidth: 12 };

/** `charge`, or `undo charge` for its compensation. */
export function stepText(step: string, action: string): string {
  return action === 'EXECUTE' ? step : `undo ${step}`;
}
