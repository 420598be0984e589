/** Who may choose names without end must not make time series without end. */
export type QueueLabels = Readonly<{
  /** What a queue is called in figures: its name, or `other` once there are too many names. */
  labelOf(queue: string): string;
}>;

const otherQueues = 'other';
const maxLabels = 1000;

/** The configured queues have their labels in any case, whatever came before them. */
export function createQueueLabels(configured: readonly string[], limit = maxLabels): QueueLabels {
  const known = new Set(configured);
  return {
    labelOf(queue) {
      if (known.has(queue)) return queue;
      if (known.size >= limit) return otherQueues;
      known.add(queue);
      return queue;
    },
  };
}
