import type { Operations } from '../../../lib/server-shapes.ts';

export type Topic = Operations['listTopics']['answer']['topics'][number];
export type Source = Operations['listSources']['answer']['sources'][number];
export type Account = Operations['getAccounting']['answer']['partitions'][number];

/** A dead-letter topic, with all of its partitions. */
export type SourceTopic = Readonly<{
  topic: string;
  partitions: readonly Source[];
  /** The worst of its partitions: those that are gone count only where no other is left. */
  state: Source['state'];
  /** Null if the end of a partition is not known. */
  lag: number | null;
  /** Null if no partition has an account. */
  isBalanced: boolean | null;
  lost: number;
}>;

const severity = { stopped: 3, waiting: 2, reading: 1, gone: 0 } as const;

/** Partitions and accounts by dead-letter topic, by name. */
export function sourceTopicsOf(
  sources: readonly Source[],
  accounts: readonly Account[],
): readonly SourceTopic[] {
  const names = [...new Set(sources.map(({ topic }) => topic))].toSorted();
  return names.map((topic) => {
    const partitions = sources.filter((source) => source.topic === topic);
    const own = accounts.filter((account) => account.topic === topic);
    const read = partitions.filter(({ state }) => state !== 'gone');
    return {
      topic,
      partitions,
      state: read.map(({ state }) => state).toSorted((a, b) => severity[b] - severity[a])[0] ?? 'gone',
      lag: read.some(({ lag }) => lag === null) ? null : read.reduce((sum, { lag }) => sum + (lag ?? 0), 0),
      isBalanced: own.length === 0 ? null : own.every(({ balanced }) => balanced),
      lost: own.reduce((sum, { lost }) => sum + lost, 0),
    };
  });
}

/** The dead-letter topics of a topic: those that its messages came from, or itself. */
export function sourcesOf(
  topic: string,
  from: readonly string[],
  all: readonly SourceTopic[],
): readonly SourceTopic[] {
  return all.filter((source) => source.topic === topic || from.includes(source.topic));
}

/** Whether the accounts of all of them add up; null if that is not known. */
export function addsUp(sources: readonly SourceTopic[]): boolean | null {
  const known = sources.flatMap(({ isBalanced }) => (isBalanced === null ? [] : [isBalanced]));
  return known.length === 0 ? null : known.every(Boolean);
}

/** A topic that was deleted and created again has an account for each time. */
export function accountOf(source: Source, accounts: readonly Account[]): Account | undefined {
  return accounts.find(
    ({ topic, topic_id: id, partition }) =>
      topic === source.topic && id === source.topic_id && partition === source.partition,
  );
}
