import { backoffMs } from '../../kernel/backoff.ts';
import { onceAborted, sleep } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import { discoverPartitions, partitionKey, type DiscoverDeps } from './discover-partitions.ts';
import { createHeldPartitions } from './held-partitions.ts';
import { createPositionMirror } from './position-mirror.ts';
import { readNode, type InFlight, type ReadDeps } from './read-node.ts';

/**
 * Reads dead-letter topics into the database, together with other replicas. Three things run side by side:
 * keeping the leases, finding and sharing out the partitions, and one fetch loop per broker node. A broker
 * that is away makes them wait and try again, never end.
 */
export type PartitionReaderDeps = Omit<ReadDeps, 'held' | 'onMoved' | 'onStored'> &
  DiscoverDeps &
  Readonly<{
    leaseMs: number;
    discoveryIntervalMs: number;
    setCluster: (clusterId: string) => Promise<void>;
    /** Resolves early when partitions may have become free. */
    waitForChange: (ms: number, signal: AbortSignal) => Promise<void>;
    onIngested: (topic: string, records: number, bytes: number) => void;
    onError: (what: string, error: unknown) => void;
  }>;

const balanceEveryMs = 2000;

export function createPartitionReader(deps: PartitionReaderDeps): Service {
  const stopping = new AbortController();
  const { signal } = stopping;
  const inFlight: InFlight = { bytes: 0 };
  const reading = new Map<number, Promise<void>>();
  let nodeOf: ReadonlyMap<string, number> = new Map();
  let discoverAtMs = 0;
  let running: Promise<unknown> = Promise.resolve();

  const held = createHeldPartitions({
    partitions: deps.partitions,
    clock: deps.clock,
    leaseMs: deps.leaseMs,
    nodeOf: (partition) => nodeOf.get(partitionKey(partition)) ?? -1,
    onLost: (count) => deps.onError('lease', new Error(`${count} partition lease was not renewed in time`)),
  });
  const mirror = createPositionMirror({
    source: deps.source,
    group: deps.group,
    monotonicMs: deps.clock.monotonicMs,
    isHeld: (id) => held.all().some((one) => one.held.id === id),
    onError: (error) => deps.onError('mirror', error),
  });
  const readDeps: ReadDeps = {
    ...deps,
    held,
    onMoved: () => void (discoverAtMs = 0),
    onStored: (one, records, bytes) => {
      mirror.note(one);
      deps.onIngested(one.topic, records, bytes);
    },
  };

  const startReading = (): void => {
    for (const node of new Set(held.all().map((one) => one.node))) {
      if (reading.has(node) || signal.aborted) continue;
      const loop = readNode(readDeps, node, inFlight, signal)
        .catch((error: unknown) => deps.onError('read', error))
        .finally(() => reading.delete(node));
      reading.set(node, loop);
    }
  };

  const discover = async (): Promise<string> => {
    const found = await discoverPartitions(deps, signal);
    await deps.partitions.forgetLocal(found.clusterId);
    nodeOf = found.nodeOf;
    for (const one of held.all()) {
      one.node = nodeOf.get(partitionKey(one.held)) ?? one.node;
      const isGone = !nodeOf.has(partitionKey(one.held)) && !found.troubled.has(one.held.topic);
      if (isGone && !one.isBusy) await held.giveBack(one);
    }
    discoverAtMs = deps.clock.monotonicMs() + deps.discoveryIntervalMs * (0.8 + 0.4 * Math.random());
    await deps.setCluster(found.clusterId);
    return found.clusterId;
  };

  /** Null when it failed; what failed is reported and tried again with the next round. */
  const attempt = async <T>(what: string, run: () => Promise<T>): Promise<T | null> => {
    try {
      return await run();
    } catch (error) {
      if (!signal.aborted) deps.onError(what, error);
      return null;
    }
  };

  const share = async (clusterId: string): Promise<boolean> => {
    // Notices at once what a seek or another replica has taken.
    await held.renew();
    for (const one of await held.balance(clusterId)) mirror.note(one.held);
    startReading();
    return true;
  };

  const shareOut = async (): Promise<void> => {
    let clusterId: string | null = null;
    for (let failures = 0; !signal.aborted;) {
      let isFine = true;
      if (clusterId === null || deps.clock.monotonicMs() >= discoverAtMs) {
        const found: string | null = await attempt('discovery', discover);
        isFine = found !== null;
        clusterId = found ?? clusterId;
      }
      // A broker that does not answer is no reason to leave the known partitions of a dead replica unread.
      const known = clusterId;
      if (known !== null) isFine = (await attempt('sharing', () => share(known))) !== null && isFine;
      failures = isFine ? 0 : failures + 1;
      const waitMs = isFine
        ? Math.min(balanceEveryMs, Math.max(50, discoverAtMs - deps.clock.monotonicMs()))
        : backoffMs({ initialMs: 500, maxMs: 10_000, jitter: 0.2 }, failures);
      await deps.waitForChange(waitMs, signal);
    }
  };

  const keepLeases = async (): Promise<void> => {
    // A row that is being written this moment, most likely by ourselves, is asked for again soon.
    for (let isLocked = false; !signal.aborted;) {
      await sleep(deps.leaseMs / (isLocked ? 30 : 3), signal);
      isLocked = (await attempt('renew', () => held.renew()))?.isLocked ?? false;
    }
  };

  return {
    name: 'dlq partition reader',
    async start() {
      running = Promise.all([shareOut(), keepLeases(), mirror.run(signal)]);
    },
    async stop(deadline) {
      stopping.abort();
      const drained = Promise.all([running, ...reading.values()]);
      await Promise.race([drained, onceAborted(deadline)]);
      await held.giveAllBack().catch((error: unknown) => deps.onError('release', error));
      if (!deadline.aborted) await mirror.flush();
    },
  };
}
