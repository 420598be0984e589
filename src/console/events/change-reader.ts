import { sleep, type Clock } from '../../kernel/clock.ts';
import type { AttentionCount, Changes, Seen } from '../../platform/work/changes/read-changes.ts';
import { createChangeLog } from './change-log.ts';
import type { Counts, EventClient, Redrive } from './event-client.ts';
import { eventSlices } from './event-slices.ts';
import { createChangeFinder } from './find-changes.ts';

export type ReaderDeps = Readonly<{
  /** Names this process in the ids of events. */
  process: string;
  readChanges: (since: Seen | null) => Promise<Changes>;
  countAttention: (slices: readonly string[]) => Promise<readonly AttentionCount[]>;
  watchRedrives: () => Promise<readonly Redrive[]>;
  clock: Clock;
  onError: (error: unknown) => void;
}>;

export type ReaderTimes = Readonly<{
  everyMs: number;
  redrivesEveryMs: number;
  countEveryMs: number;
  beatEveryMs: number;
  flushEveryMs: number;
}>;

/** Reads the database for all clients of this process. */
export type ChangeReader = Readonly<{
  /** Resolves when every change from then on is found. */
  run(over: AbortSignal): Promise<void>;
  welcome(client: EventClient, lastEventId: string | undefined): void;
}>;

export function createChangeReader(
  deps: ReaderDeps,
  times: ReaderTimes,
  clients: ReadonlySet<EventClient>,
): ChangeReader {
  const { clock } = deps;
  const log = createChangeLog(deps.process);
  const finder = createChangeFinder();
  let counts: Counts = new Map();
  let redrives: readonly Redrive[] = [];
  let uncounted = new Set<string>();
  let beatMs = 0;

  const each = (tell: (client: EventClient) => void): void => clients.forEach(tell);
  const findChanges = async (): Promise<void> => {
    const found = finder.add(await deps.readChanges(finder.since()), clock.monotonicMs());
    if (clock.monotonicMs() - beatMs >= times.beatEveryMs) {
      beatMs = clock.monotonicMs();
      each((client) => client.beat());
    }
    if (found.size === 0) return;
    for (const slice of found.keys()) uncounted.add(slice);
    const set = log.add(found);
    each((client) => client.change(set));
  };
  const count = async (): Promise<void> => {
    if (uncounted.size === 0) return;
    const slices = [...uncounted];
    uncounted = new Set();
    const rows = await deps.countAttention(slices).catch((error: unknown) => {
      for (const slice of slices) uncounted.add(slice);
      // An old figure would be taken for the current one.
      counts = new Map([...counts, ...slices.map((slice) => [slice, null] as const)]);
      each((client) => client.count(counts));
      throw error;
    });
    counts = withCounts(counts, slices, rows);
    each((client) => client.count(counts));
  };
  const watch = async (): Promise<void> => {
    redrives = await deps.watchRedrives();
    each((client) => client.redrives(redrives));
  };

  return {
    async run(over) {
      finder.reset();
      log.interrupt();
      counts = new Map();
      redrives = [];
      uncounted = new Set(eventSlices.map(({ name }) => name));
      await findChanges();
      void repeat(deps, { everyMs: times.everyMs, over }, findChanges);
      void repeat(deps, { everyMs: times.countEveryMs, over }, count);
      void repeat(deps, { everyMs: times.redrivesEveryMs, over }, watch);
      const flushing = setInterval(() => each((client) => client.flush(log.lastId())), times.flushEveryMs);
      over.addEventListener('abort', () => clearInterval(flushing), { once: true });
    },
    welcome(client, lastEventId) {
      const missed = lastEventId === undefined ? null : log.since(lastEventId);
      client.count(counts);
      client.redrives(redrives);
      if (missed === null) client.resync();
      else for (const set of missed) client.change(set);
      client.beat();
    },
  };
}

/** At most a tenth of the time goes to what is read for the console, however slow the database is. */
const shareOfTime = 10;

async function repeat(
  { clock, onError }: ReaderDeps,
  { everyMs, over }: Readonly<{ everyMs: number; over: AbortSignal }>,
  read: () => Promise<void>,
): Promise<void> {
  let isFailing = false;
  while (!over.aborted) {
    const startedMs = clock.monotonicMs();
    try {
      await read();
      isFailing = false;
    } catch (error) {
      // No client hears that all is well; the next round finds what was missed.
      if (!isFailing) onError(error);
      isFailing = true;
    }
    await sleep(Math.max(everyMs, (clock.monotonicMs() - startedMs) * shareOfTime), over);
  }
}

function withCounts(before: Counts, slices: readonly string[], rows: readonly AttentionCount[]): Counts {
  const counts = new Map(before);
  for (const slice of slices) {
    const own = rows.filter((row) => row.slice === slice);
    counts.set(slice, new Map(own.map(({ name, count }) => [name, count])));
  }
  return counts;
}
