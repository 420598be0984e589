/** An item that an id, a key or a trace led to. It shows nothing of what the item contains. */
export type FoundItem = Readonly<{
  slice: 'dlq' | 'outbox' | 'jobs' | 'saga';
  kind: 'message' | 'redrive' | 'order' | 'job' | 'saga';
  id: string;
  /** Its topic, destination, queue or workflow; of a redrive why it was made. */
  title: string;
  status: string;
  createdAt: Date;
  isArchived: boolean;
  by: FoundBy;
}>;

export type FoundBy = 'id' | 'key' | 'trace';

/** Of each kind, and by each way. */
export const maxFoundItems = 10;

/** The trace id in a text: the id itself, or a `traceparent`; null if there is none. */
export function readTraceId(text: string): string | null {
  const [, id = null] = /^(?:[0-9a-f]{2}-)?([0-9a-f]{32})(?:-[0-9a-f]{16}-[0-9a-f]{2})?$/i.exec(text) ?? [];
  return id?.toLowerCase() ?? null;
}
