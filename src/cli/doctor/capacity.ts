import type { Config } from '../../config/config.ts';

/**
 * How much a deployment needs, computed from its configuration and its load. docs/capacity.md has the same formulas; a
 * test compares them, and another one compares the figures per item with a running system.
 */
export type Load = Readonly<{
  replicas: number;
  /** Items per day, by slice. */
  perDay: Readonly<Record<SliceName, number>>;
  /** Mean size of a payload. */
  payloadBytes: number;
  /** Mean duration of a call. */
  callMs: number;
  /** Mean number of steps of a saga. */
  steps: number;
}>;

export type SliceName = 'dlq' | 'outbox' | 'jobs' | 'saga';
const sliceNames: readonly SliceName[] = ['dlq', 'outbox', 'jobs', 'saga'];

/** What one item leaves behind until its retention ends; for a saga, what one of its steps adds. */
export type Cost = Readonly<{
  rows: number;
  /** With indexes, besides the payload. */
  bytes: number;
  /** Besides the payload. */
  walBytes: number;
  /** Items that one process settles in a second on two cores: see docs/benchmarks.md. */
  settledPerSecond: number;
}>;

export const costs: Readonly<Record<SliceName | 'step', Cost>> = {
  dlq: { rows: 4, bytes: 6000, walBytes: 7500, settledPerSecond: 11_000 },
  outbox: { rows: 5, bytes: 4500, walBytes: 6000, settledPerSecond: 5700 },
  jobs: { rows: 1, bytes: 1000, walBytes: 2000, settledPerSecond: 44_000 },
  saga: { rows: 2, bytes: 2000, walBytes: 10_000, settledPerSecond: 1700 },
  step: { rows: 1, bytes: 1200, walBytes: 6000, settledPerSecond: 5100 },
};

/** In words, as docs/capacity.md has them. */
export const formulas = {
  connections: 'replicas × (max_open_conns + 1 with LISTEN + 2 with direct_url)',
  inFlight: 'replicas × the limit of the slice',
  perSecond: 'min(in flight ÷ call duration, settled per second)',
  drainSeconds: 'items of a day ÷ items per second',
  rows: 'items × rows per item; for a saga, plus steps × rows per step',
  bytes: 'items × (bytes per item + payload); for a saga, plus steps × (bytes per step + payload)',
  wal: 'items × (WAL per item + 2 × payload); for a saga, plus steps × (WAL per step + 2 × payload)',
} as const;

export type SlicePlan = Readonly<{
  slice: SliceName;
  inFlight: number;
  perSecond: number;
  drainSeconds: number;
  rowsPerDay: number;
  bytesPerDay: number;
  walBytesPerDay: number;
}>;

export type Plan = Readonly<{ connections: number; slices: readonly SlicePlan[] }>;

export function planCapacity(config: Config, load: Load): Plan {
  const { database } = config;
  const direct = database.mode === 'server' && database.direct !== undefined;
  const perReplica = database.maxOpenConns + (database.wake === 'listen' ? 1 : 0) + (direct ? 2 : 0);
  return {
    connections: load.replicas * perReplica,
    slices: sliceNames.map((slice) => planSlice(slice, limitOf(slice, config), load)),
  };
}

function planSlice(slice: SliceName, limit: number, load: Load): SlicePlan {
  const items = load.perDay[slice];
  const steps = slice === 'saga' ? load.steps : 0;
  const inFlight = load.replicas * limit;
  const callSeconds = (load.callMs / 1000) * Math.max(1, steps);
  const perSecond = Math.min(inFlight / callSeconds, costs[slice].settledPerSecond);
  const { payloadBytes } = load;
  const sum = (amount: (cost: Cost) => number): number =>
    items * (amount(costs[slice]) + steps * amount(costs.step));
  return {
    slice,
    inFlight,
    perSecond,
    drainSeconds: items / perSecond,
    rowsPerDay: sum(({ rows }) => rows),
    bytesPerDay: sum(({ bytes }) => bytes + payloadBytes),
    walBytesPerDay: sum(({ walBytes }) => walBytes + 2 * payloadBytes),
  };
}

/** How many items one process works on at once. A bulk retry publishes in batches of this size. */
const retriedAtOnce = 500;
/** Workers of the client library that nothing configures. */
const queueOfItsOwn = 10;

function limitOf(slice: SliceName, { outbox, jobs, saga }: Config): number {
  switch (slice) {
    case 'dlq':
      return retriedAtOnce;
    case 'outbox':
      return outbox.batchSize * outbox.parallelism;
    case 'jobs':
      return Math.max(
        queueOfItsOwn,
        jobs.queues.reduce((all, { concurrency }) => all + concurrency, 0),
      );
    case 'saga':
      return saga.maxConcurrent;
  }
}
