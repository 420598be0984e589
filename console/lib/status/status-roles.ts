/** What a status means for the reader; each meaning has a glyph, and most have a colour. */
export type StatusRole =
  | 'attention'
  | 'retry'
  | 'working'
  | 'undoing'
  | 'done'
  | 'queued'
  | 'ended'
  | 'archived'
  | 'doubt';

/** The words of all modules. No two of them use one word for different meanings: `failed` retries, `FAILED` is undone. */
const roles: Readonly<Record<string, StatusRole>> = {
  // Messages.
  PENDING: 'retry',
  RETRYING: 'working',
  RESOLVED: 'done',
  DEAD: 'attention',
  // Orders and jobs.
  queued: 'queued',
  pending: 'queued',
  sending: 'working',
  running: 'working',
  sent: 'done',
  completed: 'done',
  failed: 'retry',
  dead: 'attention',
  dead_letter: 'attention',
  cancelled: 'ended',
  skipped: 'ended',
  superseded: 'ended',
  discarded: 'ended',
  requeued: 'ended',
  // Sagas and their steps.
  STARTED: 'working',
  RUNNING: 'working',
  COMPENSATING: 'undoing',
  COMPLETED: 'done',
  FAILED: 'ended',
  CANCELLED: 'ended',
  SUCCESS: 'done',
  TIMEOUT: 'doubt',
  SKIPPED: 'ended',
  UNKNOWN: 'doubt',
  stuck: 'attention',
  // Redrives and their messages.
  planning: 'working',
  planned: 'queued',
  awaiting_approval: 'queued',
  paused: 'queued',
  waiting: 'queued',
  stopped: 'attention',
  finished: 'done',
  expired: 'ended',
  published: 'done',
  not_published: 'ended',
  quiet: 'done',
  came_back: 'attention',
  unknown: 'doubt',
  // Attempts to send an order, and what the ledger records of its effect.
  released: 'queued',
  lease_expired: 'doubt',
  late_success: 'done',
  already_sent: 'done',
  accepted: 'queued',
  succeeded: 'done',
  // Circuits.
  open: 'attention',
  half_open: 'retry',
  closed: 'done',
  // Readiness.
  healthy: 'done',
  degraded: 'retry',
  unhealthy: 'attention',
  archived: 'archived',
  // Acts.
  success: 'done',
  failure: 'attention',
  started: 'working',
};

/** A status of a later version of the server is shown without a meaning. */
export function roleOf(status: string): StatusRole {
  return Object.hasOwn(roles, status) ? (roles[status] ?? 'queued') : 'queued';
}

export const statusesWithRoles: readonly string[] = Object.keys(roles);
