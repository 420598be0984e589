import assert from 'node:assert/strict';
import { test } from 'node:test';
import { discoverPartitions, type DiscoverDeps } from './discover-partitions.ts';
import type { PartitionStore, Source } from './ports.ts';

type Listing = Awaited<ReturnType<Source['partitions']>>;
type Added = readonly (readonly [string, number, bigint])[];

const part = (topic: string, partition: number) =>
  ({ topic, topicId: `${topic}-id`, partition, start: 0n, end: 9n, node: 1 }) as const;

/** One discovery over a listing, and the partitions that it adds with their first positions. */
async function discover(
  listing: Omit<Listing, 'clusterId'>,
  more: Readonly<{ known?: readonly ReturnType<typeof part>[]; committed?: Source['committed'] }> = {},
): Promise<Added> {
  const added: (readonly [string, number, bigint])[] = [];
  const deps: DiscoverDeps = {
    source: {
      partitions: async () => ({ clusterId: 'c', ...listing }),
      committed: more.committed ?? (async () => []),
    } as Partial<Source> as Source,
    partitions: {
      known: async () => more.known ?? [],
      add: async (_cluster, found) =>
        void added.push(...found.map((one) => [one.topic, one.partition, one.firstOffset] as const)),
      observe: async () => {},
    } as Partial<PartitionStore> as PartitionStore,
    isDeadLetterTopic: () => true,
    group: 'dlq-manager.default',
    onTrouble: () => {},
  };
  await discoverPartitions(deps, new AbortController().signal);
  return added;
}

const committedAt =
  (offset: bigint, metadata: string): Source['committed'] =>
  async (_group, partitions) =>
    partitions.map((one) => ({ ...one, offset, metadata }));

test('a new topic begins where the group stood, a topic known by name at its start', async () => {
  const listing = { partitions: [part('new.dlq', 0), part('old.dlq', 1)], troubles: [] };
  const known = [part('old.dlq', 0)];
  assert.deepEqual(await discover(listing, { known, committed: committedAt(5n, '') }), [
    ['new.dlq', 0, 5n],
    ['old.dlq', 1, 0n],
  ]);
});

test('an offset that we mirrored ourselves is no first position', async () => {
  const listing = { partitions: [part('new.dlq', 0)], troubles: [] };
  const committed = committedAt(5n, 'redrive/new.dlq-id');
  assert.deepEqual(await discover(listing, { committed }), [['new.dlq', 0, 0n]]);
});

test('a new topic waits until all of it can be seen, or its rest would be read from the start', async () => {
  const troubles = [{ topic: 'new.dlq', partition: 1, code: 'LEADER_NOT_AVAILABLE', message: 'no leader' }];
  const partitions = [part('new.dlq', 0), part('fine.dlq', 0)];
  assert.deepEqual(await discover({ partitions, troubles }), [['fine.dlq', 0, 0n]]);
});

test('when the group cannot be asked nothing is added', async () => {
  const listing = { partitions: [part('new.dlq', 0)], troubles: [] };
  const away = discover(listing, { committed: () => Promise.reject(new Error('coordinator away')) });
  await assert.rejects(away, /coordinator away/);
});
