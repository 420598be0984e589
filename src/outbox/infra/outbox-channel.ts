/** Where whoever waits for orders of a destination is woken; `outbox.insert_order` says the same in SQL. */
export function outboxChannel(destination: string): string {
  return `outbox:${destination}`;
}
