/** Where whoever waits for jobs of a queue is woken; the functions that enqueue use the same name. */
export function jobsChannel(queue: string): string {
  return `jobs:${queue}`;
}
