/** The wake-up channel of a destination; `outbox.insert_order` builds the same name in SQL. */
export function outboxChannel(destination: string): string {
  return `outbox:${destination}`;
}
