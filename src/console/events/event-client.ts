import { namesAllowed, type Principal } from '../../kernel/access/principal.ts';
import { passes, type NameFilter } from '../../kernel/access/scope.ts';
import type { EventStream } from '../../platform/http/streams/event-stream.ts';
import type { ChangeSet } from './change-log.ts';
import { createEventQueue } from './event-queue.ts';
import { eventSlices, type EventSlice } from './event-slices.ts';

export type Redrive = Readonly<{ topics: readonly string[]; view: Readonly<Record<string, unknown>> }>;
/** What needs attention, by slice and name; null for a slice that could not be counted. */
export type Counts = ReadonlyMap<string, ReadonlyMap<string, number> | null>;

/** One open stream: it tells its client what the principal may see. */
export type EventClient = Readonly<{
  change(set: ChangeSet): void;
  count(counts: Counts): void;
  redrives(all: readonly Redrive[]): void;
  /** The client has to read everything again. */
  resync(): void;
  beat(): void;
  /** Sends one event if the client has taken the last one. `id` is that of the newest change. */
  flush(id: string): void;
  close(): void;
}>;

export function createEventClient(stream: EventStream, principalOf: () => Principal): EventClient {
  const queue = createEventQueue();
  const namesOf = ({ permission, dimension }: EventSlice): NameFilter =>
    namesAllowed(principalOf(), permission, dimension);
  return {
    change({ bySlice }) {
      for (const slice of eventSlices) {
        const found = bySlice.get(slice.name);
        if (found === undefined) continue;
        const names = namesOf(slice);
        const ids = [...found.rows].filter(([, name]) => passes(names, name)).map(([id]) => id);
        // What is not listed may belong to anybody, so a narrowed principal is told only of what is.
        const many = !found.isComplete && names === null;
        if (ids.length > 0 || many) queue.changed(slice.name, ids, many);
      }
    },
    count(counts) {
      for (const slice of eventSlices) {
        const byName = counts.get(slice.name);
        const names = namesOf(slice);
        if (byName === undefined || names?.length === 0) continue;
        if (byName === null) {
          queue.counted(slice.name, null);
          continue;
        }
        const visible = [...byName].filter(([name]) => passes(names, name));
        queue.counted(
          slice.name,
          visible.reduce((sum, [, count]) => sum + count, 0),
        );
      }
    },
    redrives(all) {
      const names = namesAllowed(principalOf(), 'dlq:redrives:view', 'topics');
      const visible = all.filter(({ topics }) => names === null || areAllIn(names, topics));
      queue.redrives(JSON.stringify({ redrives: visible.map(({ view }) => view) }));
    },
    resync: queue.resync,
    beat: queue.beat,
    flush(id) {
      if (!stream.isFree()) return;
      const next = queue.next();
      if (next !== null) stream.offer(next.event, next.data, next.isLast ? id : undefined);
    },
    close: () => stream.end('bye', '{}'),
  };
}

function areAllIn(names: NameFilter, topics: readonly string[]): boolean {
  return topics.length > 0 && topics.every((topic) => passes(names, topic));
}
