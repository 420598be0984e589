import { stopAll, type Service } from '../kernel/service.ts';
import { QueueWorker } from '../jobs/run/worker.ts';
import { handlerOf } from './handler-of.ts';
import type { JobEvent } from './job-event.ts';
import type { JobHandler } from './job-handler.ts';
import { finished, logEvent } from './jobs-events.ts';
import { createRuntime, type Shared } from './jobs-runtime.ts';
import type { PostgresPool } from './postgres-pool.ts';
import { queueOf, type Queue } from './queue.ts';
import { requireJobsSchema } from './require-jobs-schema.ts';
import { createUserDatabase } from './user-database.ts';

export type WorkersOptions = Readonly<{
  /** The service's pool. Handlers may use it too, as long as they leave a few connections free. */
  pool: PostgresPool;
  /** `poll`: no connection for LISTEN; for poolers in transaction mode. */
  wake?: 'listen' | 'poll' | undefined;
  /** How often it looks for jobs that nothing announces: delayed jobs and retries. */
  pollMs?: number | undefined;
  /** How long a job stays with a worker that is lost. */
  leaseMs?: number | undefined;
  /** Default: writes events that need attention to standard error. */
  onEvent?: ((event: JobEvent) => void) | undefined;
}>;

export type WorkOptions<Input, Output> = Readonly<{
  queue: string | Queue<Input, Output>;
  handler: JobHandler<Output>;
  /** How many handlers of this queue run at once. */
  concurrency?: number | undefined;
  /** Timeout of one handler; default: the queue's setting. */
  timeoutMs?: number | undefined;
  /** Maximum number of short jobs that are claimed ahead. */
  maxPrefetch?: number | undefined;
}>;

export type WorkerState = Readonly<{
  /** `degraded`: as many handlers as `concurrency` did not stop when they were told to, so nothing is claimed. */
  status: 'working' | 'degraded' | 'stopping' | 'stopped';
  running: number;
  zombies: number;
}>;

export type StopOptions = Readonly<{
  /** A job that still runs then keeps its lease, and is retried when the lease expires. */
  withinMs?: number | undefined;
}>;

export type JobWorker = Readonly<{
  /** Gives back jobs that were not started; running jobs finish. */
  stop(options?: StopOptions): Promise<void>;
  state(): WorkerState;
  /** Handlers that were told to stop and did not. */
  zombies(): number;
}>;

/** The workers of all queues of a process; they share connections and services. */
export type JobWorkers = Readonly<{
  work<Input, Output>(options: WorkOptions<Input, Output>): Promise<JobWorker>;
  stop(options?: StopOptions): Promise<void>;
  /** Number of outcomes that were dropped because the lease was lost. */
  staleWrites(): number;
}>;

/** Kubernetes gives a container 30 s by default. */
const stopWithinMs = 30_000;
/** The work has ended by then; only loops that wait are left. */
const closeWithinMs = 5000;

export function createWorkers(options: WorkersOptions): JobWorkers {
  const { pool } = options;
  if (typeof (pool as PostgresPool | undefined)?.connect !== 'function')
    throw new TypeError('workers need a pool: { pool: new Pool() }');
  const pollMs = inRange('pollMs', options.pollMs ?? 1000, 10, 3_600_000);
  const leaseMs = inRange('leaseMs', options.leaseMs ?? 30_000, 500, 3_600_000);
  const listen = options.wake !== 'poll';
  const emit = safely(options.onEvent ?? logEvent);
  const db = createUserDatabase(pool, { connectWithinMs: Math.min(leaseMs / 3, 10_000) });
  const { shared, services, refresh, staleWrites } = createRuntime(db, { listen, leaseMs, pollMs, emit });
  // Without a listener, an idle connection that breaks would end the process.
  const onPoolError = (error: unknown): void => emit({ type: 'trouble', what: 'lost a connection', error });
  const workers = new Set<JobWorker>();
  let started: Promise<void> | null = null;
  let isStopped = false;

  const start = async (): Promise<void> => {
    await requireJobsSchema(db);
    await refresh();
    pool.on('error', onPoolError);
    for (const service of services) await service.start();
  };

  return {
    staleWrites,
    async work(work) {
      if (isStopped) throw new TypeError('these workers were stopped; create new ones');
      const worker = createWorker(shared, work);
      await (started ??= start().catch((error: unknown) => {
        started = null;
        throw error;
      }));
      workers.add(worker);
      await worker.start();
      return worker;
    },
    async stop({ withinMs = stopWithinMs } = {}) {
      isStopped = true;
      const wasStarted = await started?.then(
        () => true,
        () => false,
      );
      if (wasStarted !== true) return;
      await Promise.all([...workers].map((worker) => worker.stop({ withinMs })));
      await stopAll(services, closeWithinMs);
      pool.off('error', onPoolError);
    },
  };
}

function createWorker<Input, Output>(
  shared: Shared,
  options: WorkOptions<Input, Output>,
): JobWorker & Pick<Service, 'start'> {
  const { emit, waitForCancel } = shared;
  const queue = queueOf(options.queue);
  const { name } = queue;
  const concurrency = inRange('concurrency', options.concurrency ?? 10, 1, 10_000);
  const timeoutMs =
    options.timeoutMs === undefined ? null : inRange('timeoutMs', options.timeoutMs, 1, 86_400_000);
  const runner = new QueueWorker(
    {
      ...shared.deps,
      onSettled: (settlement, status) => emit(finished(name, settlement, status)),
      onError: (what, error) => emit({ type: 'trouble', what: `${what} of ${name}`, error }),
    },
    {
      queue: name,
      handler: handlerOf(queue, options.handler),
      concurrency,
      maxPrefetch: inRange('maxPrefetch', options.maxPrefetch ?? 2000, 0, 10_000),
      timeoutMs: () => timeoutMs ?? shared.timeoutMsOf(name),
      leaseMs: shared.leaseMs,
      pollMs: shared.pollMs,
    },
  );
  const stopping = new AbortController();
  let status: 'working' | 'stopping' | 'stopped' = 'working';
  let stopped: Promise<void> | null = null;

  const watchCancels = async (wait: NonNullable<typeof waitForCancel>): Promise<void> => {
    while (!stopping.signal.aborted) {
      await wait(name, stopping.signal);
      runner.checkLeases();
    }
  };

  const stop = async (withinMs: number): Promise<void> => {
    status = 'stopping';
    stopping.abort();
    await runner.stop(AbortSignal.timeout(withinMs));
    status = 'stopped';
  };

  return {
    async start() {
      await runner.start();
      if (waitForCancel !== null) void watchCancels(waitForCancel);
    },
    stop: ({ withinMs = stopWithinMs } = {}) => (stopped ??= stop(withinMs)),
    zombies: () => runner.zombies(),
    state: () => ({
      status: status === 'working' && runner.zombies() >= concurrency ? 'degraded' : status,
      running: runner.running(),
      zombies: runner.zombies(),
    }),
  };
}

/** An error in the listener does not disturb the worker. */
function safely(onEvent: (event: JobEvent) => void): (event: JobEvent) => void {
  return (event) => {
    try {
      onEvent(event);
    } catch (error) {
      logEvent({ type: 'trouble', what: 'onEvent threw', error });
    }
  };
}

function inRange(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new RangeError(`${name} must be a whole number from ${least} to ${most}, not ${String(value)}`);
}
