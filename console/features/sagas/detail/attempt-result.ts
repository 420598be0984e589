import type { StatusRole } from '../../../lib/status/status-roles.ts';
import type { LogRow } from '../use-saga.ts';

/** How an attempt ended; each has a word and a glyph. */
export type Result =
  | 'done'
  | 'undone'
  | 'open'
  | 'working'
  | 'refused'
  | 'defect'
  | 'unknown'
  | 'timeout'
  | 'unsent'
  | 'unserved'
  | 'unavailable'
  | 'not_done'
  | 'skipped';

export function resultOf({ status, answer, action, headers, isPolled }: LogRow): Result {
  if (status === null) return isPolled ? 'working' : 'open';
  if (status === 'SUCCESS') return action === 'COMPENSATE' ? 'undone' : 'done';
  if (status === 'SKIPPED') return 'skipped';
  if (answer === 'unknown' || answer === null) {
    if (headers === null) return 'unsent';
    return status === 'TIMEOUT' ? 'timeout' : 'unknown';
  }
  return answer === 'done' ? 'done' : answer;
}

export const roleOfResult: Readonly<Record<Result, StatusRole>> = {
  done: 'done',
  undone: 'done',
  open: 'doubt',
  working: 'working',
  refused: 'ended',
  defect: 'attention',
  unknown: 'doubt',
  timeout: 'doubt',
  unsent: 'retry',
  unserved: 'attention',
  unavailable: 'retry',
  not_done: 'ended',
  skipped: 'ended',
};

/** Null while it is open. */
export function tookMs({ started_at: from, completed_at: to }: LogRow): number | null {
  if (from === null || to === null) return null;
  return Math.max(0, Date.parse(to) - Date.parse(from));
}

/** Milliseconds below a second, because most calls take that. */
export function formatTook(ms: number | null, formatLonger: (ms: number) => string): string {
  if (ms === null) return '…';
  return ms < 1000 ? `${Math.round(ms)} ms` : formatLonger(ms);
}
