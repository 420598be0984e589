import type { ListedSaga, SagaStep } from '../../lib/server-shapes.ts';
import type { StatusRole } from '../../lib/status/status-roles.ts';

export const roleOfState: Readonly<Record<SagaStep['state'], StatusRole>> = {
  not_started: 'queued',
  running: 'working',
  retrying: 'retry',
  done: 'done',
  skipped: 'ended',
  failed: 'ended',
  in_doubt: 'doubt',
  undoing: 'undoing',
  undone: 'ended',
  undo_skipped: 'ended',
  stuck: 'attention',
};

/** What a saga waits for. */
export type Wait =
  | Readonly<{ for: 'nothing' | 'call' }>
  | Readonly<{ for: 'operator'; step: string; isUndo: boolean }>
  | Readonly<{ for: 'service'; service: string }>
  | Readonly<{ for: 'time'; at: string }>;

export function waitOf(saga: Pick<ListedSaga, 'status' | 'stuck' | 'waiting_for' | 'next_attempt_at'>): Wait {
  const { status, stuck, waiting_for: waiting, next_attempt_at: next } = saga;
  if (stuck !== undefined)
    return { for: 'operator', step: stuck.step ?? '?', isUndo: stuck.action === 'COMPENSATE' };
  if (waiting !== undefined) return { for: 'service', service: waiting.service };
  if (status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELLED') return { for: 'nothing' };
  return next === null ? { for: 'call' } : { for: 'time', at: next };
}
