/** Where workers that run jobs of a queue are told that one of them was cancelled: they renew, and find it gone. */
export function cancelledChannel(queue: string): string {
  return `jobs-cancelled:${queue}`;
}
