/** Names of the NOTIFY channels. The SQL functions that enqueue use the same name. */
export function jobsChannel(queue: string): string {
  return `jobs:${queue}`;
}

/** Tells all processes that settings, the throttle or the circuit of a queue have changed. */
export const queuesChannel = 'jobs-queues';

/** Tells workers of the queue that a running job was cancelled: they renew their leases and find it gone. */
export function cancelledChannel(queue: string): string {
  return `jobs-cancelled:${queue}`;
}
