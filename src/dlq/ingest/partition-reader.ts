import { backoffMs } from '../../kernel/backoff.ts';
import { onceAborted, sleep } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { Service } from '../../kernel/service.ts';
import { discoverPartitions, partitionKey, type DiscoverDeps } from './discover-partitions.ts';
import { createLeasedPartitions, type LeasedPartitions } from './leased-partitions.ts';
import { deleteLocalPartitions } from './partitions-table.ts';
import { createPositionMirror, type PositionMirror } from './position-mirror.ts';
import { readNode, type InFlight, type ReadDeps } from './read-node.ts';

/**
 * Reads dead-letter topics into the database, together with other replicas. A partition is a row that one replica
 * leases at a time; its position moves in the transaction that stores its records. Three things run in parallel:
 *
 *   assign  discover partitions -> claim this replica's share -> start a fetch loop per broker node
 *   read    per node: fetch -> decode -> store (read-node.ts)
 *   renew   the leases
 *
 * If the broker is unavailable they wait and retry; they never end before the stop.
 */
export type PartitionReaderDeps = Omit<ReadDeps, 'partitions' | 'onMoved' | 'onStored'> &
  Omit<DiscoverDeps, 'db'> &
  Readonly<{
    leaseMs: number;
    discoveryIntervalMs: number;
    setCluster: (clusterId: string) => Promise<void>;
    /** Resolves early when partitions may have become free. */
    waitForChange: (ms: number, signal: AbortSignal) => Promise<unknown>;
    onLeased: (topic: string) => void;
    onIngested: (topic: string, records: number, bytes: number) => void;
    onError: (what: string, error: unknown) => void;
  }>;

/** What keeps this process from finding partitions; errors of a known partition are in its row. */
export type DiscoveryTrouble = Readonly<{
  /** Why the last discovery failed, or null. */
  failure: string | null;
  /** Matching topics that we may not describe. */
  denied: readonly string[];
}>;

export type PartitionReader = Service & Readonly<{ discoveryTrouble(): DiscoveryTrouble }>;

type Reader = {
  readonly deps: PartitionReaderDeps;
  readonly signal: AbortSignal;
  readonly partitions: LeasedPartitions;
  readonly mirror: PositionMirror;
  readonly inFlight: InFlight;
  /** The fetch loops, by broker node. */
  readonly loops: Map<number, Promise<void>>;
  nodeOf: ReadonlyMap<string, number>;
  discoverAtMs: number;
  trouble: DiscoveryTrouble;
};

/** How late partitions move to a replica that has joined, or away from one that has left. */
const balanceEveryMs = 2000;
const assignBackoff = { initialMs: 500, maxMs: 10_000, jitter: 0.2 };

export function createPartitionReader(deps: PartitionReaderDeps): PartitionReader {
  const stopping = new AbortController();
  const reader = createReader(deps, stopping.signal);
  let running: Promise<unknown> = Promise.resolve();
  return {
    name: 'dlq partition reader',
    discoveryTrouble: () => reader.trouble,
    async start() {
      deps.worker.watch?.beat('dlq', 'discovery');
      running = Promise.all([
        assignPartitions(reader),
        renewLeases(reader),
        reader.mirror.run(reader.signal),
      ]);
    },
    async stop(deadline) {
      stopping.abort();
      const drained = Promise.all([running, ...reader.loops.values()]);
      await Promise.race([drained, onceAborted(deadline)]);
      await reader.partitions.releaseAll().catch((error: unknown) => deps.onError('release', error));
      if (!deadline.aborted) await reader.mirror.flush();
    },
  };
}

function createReader(deps: PartitionReaderDeps, signal: AbortSignal): Reader {
  const partitions = createLeasedPartitions({
    worker: deps.worker,
    leaseMs: deps.leaseMs,
    nodeOf: (partition) => reader.nodeOf.get(partitionKey(partition)) ?? -1,
    onExpired: () => deps.onError('renewal', new Error('a partition lease expired before it was renewed')),
  });
  const mirror = createPositionMirror({
    broker: deps.broker,
    group: deps.group,
    monotonicMs: deps.worker.clock.monotonicMs,
    isLeased: (id) => partitions.all().some((one) => one.leased.id === id),
    onError: (error) => deps.onError('mirror', error),
  });
  const reader: Reader = {
    deps,
    signal,
    partitions,
    mirror,
    inFlight: { bytes: 0 },
    loops: new Map(),
    nodeOf: new Map(),
    discoverAtMs: 0,
    trouble: { failure: null, denied: [] },
  };
  return reader;
}

async function assignPartitions(reader: Reader): Promise<void> {
  const { deps, signal } = reader;
  const { clock } = deps.worker;
  let clusterId: string | null = null;
  for (let failures = 0; !signal.aborted;) {
    let isFine = true;
    if (clusterId === null || clock.monotonicMs() >= reader.discoverAtMs) {
      const found: string | null = await attempt(reader, 'discovery', () => discover(reader));
      isFine = found !== null;
      clusterId = found ?? clusterId;
    }
    // Also while the broker is unavailable: this replica takes over the known partitions of lost replicas.
    const known = clusterId;
    if (known !== null) {
      const balanced = await attempt(reader, 'balancing', () => balance(reader, known));
      isFine = balanced !== null && isFine;
    }
    if (isFine) deps.worker.watch?.beat('dlq', 'discovery');
    failures = isFine ? 0 : failures + 1;
    const waitMs = isFine
      ? Math.min(balanceEveryMs, Math.max(50, reader.discoverAtMs - clock.monotonicMs()))
      : backoffMs(assignBackoff, failures);
    await deps.waitForChange(waitMs, signal);
  }
}

/** Null if it failed; the error is reported, and the caller tries again. */
async function attempt<T>(reader: Reader, what: string, run: () => Promise<T>): Promise<T | null> {
  try {
    return await run();
  } catch (error) {
    if (reader.signal.aborted) return null;
    if (what === 'discovery') reader.trouble = { ...reader.trouble, failure: messageOf(error) };
    reader.deps.onError(what, error);
    return null;
  }
}

async function discover(reader: Reader): Promise<string> {
  const { deps, partitions } = reader;
  const found = await discoverPartitions(deps, reader.signal);
  await deleteLocalPartitions(deps.db, found.clusterId);
  reader.nodeOf = found.nodeOf;
  reader.trouble = { failure: null, denied: found.denied };
  for (const one of partitions.all()) {
    const node = found.nodeOf.get(partitionKey(one.leased));
    one.node = node ?? one.node;
    const isGone = node === undefined && !found.unknownTopics.has(one.leased.topic);
    if (isGone && !one.isBusy) await partitions.release(one);
  }
  const jitter = 0.8 + 0.4 * Math.random();
  reader.discoverAtMs = deps.worker.clock.monotonicMs() + deps.discoveryIntervalMs * jitter;
  await deps.setCluster(found.clusterId);
  return found.clusterId;
}

async function balance(reader: Reader, clusterId: string): Promise<true> {
  const { deps, partitions, mirror } = reader;
  // Renewing drops at once what a seek or another replica has taken.
  await partitions.renewAll();
  for (const { leased } of await partitions.balance(clusterId)) {
    mirror.note(leased);
    deps.onLeased(leased.topic);
  }
  startLoops(reader);
  return true;
}

function startLoops(reader: Reader): void {
  const { deps, partitions, mirror, loops, signal } = reader;
  const readDeps: ReadDeps = {
    ...deps,
    partitions,
    onMoved: () => void (reader.discoverAtMs = 0),
    onStored(leased, records, bytes) {
      mirror.note(leased);
      deps.onIngested(leased.topic, records, bytes);
    },
  };
  for (const node of new Set(partitions.all().map((one) => one.node))) {
    if (loops.has(node) || signal.aborted) continue;
    const loop = readNode(readDeps, node, reader.inFlight, signal)
      .catch((error: unknown) => deps.onError('read', error))
      .finally(() => loops.delete(node));
    loops.set(node, loop);
  }
}

async function renewLeases(reader: Reader): Promise<void> {
  const { deps, partitions, signal } = reader;
  while (!signal.aborted) {
    await sleep(deps.leaseMs / 30, signal);
    await attempt(reader, 'renewal', partitions.renewDue);
  }
}
