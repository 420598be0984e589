import type { Clock } from '../../kernel/clock.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Service } from '../../kernel/service.ts';
import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { countReplicas, type Replica } from '../../platform/work/replicas.ts';
import type { Wake } from '../../platform/work/wake.ts';
import { cancelledChannel } from '../channels.ts';
import { claimJobs, type Claimed, type ClaimedJob, type ClaimOptions } from '../claim-jobs.ts';
import { isOpen, type PushCircuit } from '../domain/push-circuit.ts';
import type { WorkDeps } from '../jobs-table.ts';
import { slowQueue } from '../queue-limits.ts';
import { changeCircuit, type Queues } from '../queues.ts';
import { payloadBytes, readPayload, type PayloadReading } from '../read-payload.ts';
import { createHttpTarget, type HttpTarget, type TargetSettings } from './http-target.ts';
import { createPayloadRoom } from './payload-room.ts';
import { pushCheck, type WatchedQueue } from './push-check.ts';
import { createPushGate, type PushGate } from './push-gate.ts';
import { createPushPace, type PushPace } from './push-pace.ts';

/** A worker of one queue; the run flow creates it. */
export type PushWorker = Service & WatchedQueue['worker'] & Readonly<{ checkLeases(): void }>;

export type PushWorkerOptions = Readonly<{
  queue: string;
  handler: HttpTarget['push'];
  claim: (options: ClaimOptions) => Promise<Claimed>;
  readPayload: (job: ClaimedJob) => Promise<PayloadReading | null>;
  concurrency: number;
  timeoutMs: () => number;
  pollMs: number;
}>;

export type PushDeps = WorkDeps &
  Readonly<{
    db: Database;
    clock: Clock;
    wake: Wake;
    /** Replicas share a target's rate. */
    replica: Pick<Replica, 'workers'>;
    log: Logger;
    queues: Queues;
    createWorker: (options: PushWorkerOptions) => PushWorker;
  }>;

export type PushedQueue = Readonly<{
  name: string;
  concurrency: number;
  timeoutMs: number;
  target: Pick<TargetSettings, 'url' | 'headers' | 'tls'> | null;
}>;

/** Only the backstop: notifications wake workers earlier. */
const pollMs = 500;
/** The worker's timeout is longer than the call's: the call knows better why it timed out. */
const extraTimeoutMs = 5000;
/** In case a notification of a cancel was lost. */
const checkCancelledMs = 5000;

type TargetedQueue = PushedQueue & Readonly<{ target: NonNullable<PushedQueue['target']> }>;
type Pusher = WatchedQueue & Readonly<{ worker: PushWorker; target: HttpTarget }>;

export type Pushers = Readonly<{ services: readonly Service[]; checks: readonly HealthCheck[] }>;

/** One worker per queue with a target; its handler calls the target. */
export function createPushers(deps: PushDeps, queues: readonly PushedQueue[]): Pushers {
  const { db, clock, wake } = deps;
  const targeted = queues.filter((queue): queue is TargetedQueue => queue.target !== null);
  if (targeted.length === 0) return { services: [], checks: [] };
  const countPushing = (): Promise<number> => countReplicas(db, { role: 'workers' });
  const pushers = targeted.map((queue) => createPusher(deps, queue, targeted.length));
  return {
    services: [inParallel(pushers.map((pusher) => serve(pusher, wake)))],
    checks: [pushCheck({ clock, countPushing }, pushers)],
  };
}

function createPusher(deps: PushDeps, queue: TargetedQueue, targetCount: number): Pusher {
  const { db, log, queues } = deps;
  const { name, concurrency } = queue;
  const timeoutMs = (): number => queues.settingsOf(name).timeoutMs;
  const gate = createGate(deps, queue, timeoutMs);
  const target = createHttpTarget(
    { ...queue.target, connections: concurrency, connectTimeoutMs: queue.timeoutMs, timeoutMs },
    {
      pace: createPace(deps, name),
      gate,
      onMisconfigured: (why) => log.warn({ queue: name, error: why }, 'failed to push a job'),
    },
  );
  const worker = deps.createWorker({
    queue: name,
    handler: target.push,
    claim: gate.claim,
    readPayload: createPayloadRoom(
      { bytes: (job) => payloadBytes(db, job), payload: (job) => readPayload(db, job) },
      targetCount,
    ),
    concurrency,
    timeoutMs: () => timeoutMs() + extraTimeoutMs,
    pollMs,
  });
  const downSince = (): Date | null => {
    const circuit = queues.circuitOf(name);
    return isOpen(circuit) ? new Date(circuit.openedAtMs) : null;
  };
  return { name, concurrency, timeoutMs, worker, target, downSince };
}

function createPace({ db, clock, log, queues, replica }: PushDeps, queue: string): PushPace {
  return createPushPace({
    clock,
    replicas: replica.workers,
    async slow(measuredRate) {
      if (!(await slowQueue(db, queue, measuredRate))) return;
      log.info({ queue }, 'throttled the queue because its target is busy');
      await queues.refresh();
    },
    onError: (error) => log.warn({ err: error, queue }, 'failed to throttle the queue'),
  });
}

function createGate(deps: PushDeps, { name, target }: TargetedQueue, timeoutMs: () => number): PushGate {
  const { db, clock, log, queues } = deps;
  return createPushGate({
    claim: (options) => claimJobs(deps, { ...options, payloadAs: 'text' }),
    clock,
    known: () => queues.circuitOf(name),
    async change(decide) {
      const changed = await changeCircuit(db, { queue: name, url: target.url }, decide);
      queues.noteCircuit(name, changed.after);
      return changed;
    },
    probeMs: () => timeoutMs() + extraTimeoutMs,
    onChange: (circuit) => logCircuit(log, name, circuit),
    onError: (error) => log.warn({ err: error, queue: name }, 'failed to update the circuit'),
  });
}

function logCircuit(log: Logger, queue: string, circuit: PushCircuit | null): void {
  if (isOpen(circuit))
    log.warn({ queue, error: circuit.reason }, 'circuit opened: the target is down, jobs wait at no cost');
  else log.info({ queue }, 'circuit closed: the target answers again');
}

/** All of them stop claiming at once, and none waits for another's running calls. */
function inParallel(services: readonly Service[]): Service {
  return {
    name: 'jobs pushers',
    async start() {
      await Promise.all(services.map((service) => service.start()));
    },
    async stop(deadline) {
      await Promise.all(services.map((service) => service.stop(deadline)));
    },
  };
}

/** The worker, a listener for cancelled jobs, and the connections, which close last. */
function serve({ name, worker, target }: Pusher, wake: Wake): Service {
  const cancelled = createLoop({
    name: `jobs cancelled ${name}`,
    everyMs: 0,
    async run(stopping) {
      await wake.wait(cancelledChannel(name), checkCancelledMs, stopping);
      worker.checkLeases();
    },
    onError: () => {},
  });
  return {
    name: `jobs push ${name}`,
    async start() {
      await worker.start();
      await cancelled.start();
    },
    async stop(deadline) {
      await worker.stop(deadline);
      await cancelled.stop(deadline);
      await target.close();
    },
  };
}
