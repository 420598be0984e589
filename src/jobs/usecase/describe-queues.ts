import type { QueueSettings } from '../domain/queue-settings.ts';
import type { JobReader, QueueReading } from './reading-ports.ts';

export type DescribeDeps = Readonly<{
  reader: Pick<JobReader, 'queues'>;
  settingsOf: (queue: string) => QueueSettings;
  /** The queues whose jobs a server pushes somewhere, as this process is configured. */
  pushed: ReadonlySet<string>;
}>;

export type DescribedQueue = QueueReading & Readonly<{ settings: QueueSettings; hasTarget: boolean }>;

/** By name. */
export async function describeQueues(deps: DescribeDeps): Promise<readonly DescribedQueue[]> {
  const queues = await deps.reader.queues();
  return queues
    .map((queue) => ({
      ...queue,
      settings: deps.settingsOf(queue.name),
      hasTarget: deps.pushed.has(queue.name),
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
