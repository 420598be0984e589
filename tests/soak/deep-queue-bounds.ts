import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { Replica } from '../chaos/support/start-replica.ts';
import { until } from '../chaos/support/until.ts';
import { createTestJobStore, type TestJobStore } from '../support/job-store.ts';
import { createTestWorker } from '../support/worker.ts';

/**
 * How long things take beside a queue that is deep. Each is done several times, and the one in the middle must be
 * within its bound: generous for a machine that has other things to do, and far below what reading all the jobs takes.
 */
export type Bounds = Readonly<{
  claims(when: string): Promise<void>;
  /** From the enqueue to the completion of a job for a worker that has nothing to do. */
  pickUps(when: string): Promise<void>;
  /** What people ask for. `inTheDepth`: one that waits far behind, and is cancelled. */
  answers(inTheDepth: string): Promise<void>;
  /** What was beyond its bound, or was answered wrongly. */
  breaches(): readonly string[];
}>;

export type BoundsDeps = Readonly<{
  db: Database;
  server: Replica;
  deepQueue: string;
  idleQueue: string;
  /** How often each is done. */
  times: number;
  /** How many times its bound a thing may take: more than one where the machine may be very busy. */
  patience: number;
  enqueue: (queue: string, count: number) => Promise<readonly string[]>;
  say: (line: string) => void;
}>;

const claimed = 100;
const claimWithinMs = 250;
const pickUpWithinMs = 500;
const answerWithinMs = 2000;
const pauseWithinMs = 15_000;
const figuresWithinMs = 60_000;
/** Figures count no further, those that have failed and wait again among them. */
const countedRows = 100_000;
const almost = 0.9;

export function createBounds(deps: BoundsDeps): Bounds {
  const { db, server, deepQueue, times, patience, say } = deps;
  const breaches: string[] = [];
  const store = createTestJobStore(db, { worker: createTestWorker(db, 'bounds') });
  const expect = (isKept: boolean, what: string): void => void (isKept || breaches.push(what));
  const measure = async (what: string, withinMs: number, work: () => Promise<unknown>): Promise<void> => {
    const tookMs: number[] = [];
    for (let i = 0; i < times; i += 1) {
      const begin = performance.now();
      await work();
      tookMs.push(performance.now() - begin);
    }
    tookMs.sort((a, b) => a - b);
    const [middle = 0, longest = 0] = [tookMs[times >> 1], tookMs.at(-1)];
    const facts = `${what}: ${middle.toFixed(1)} ms in the middle, ${longest.toFixed(1)} ms at the longest`;
    say(facts);
    expect(middle <= withinMs * patience, `${facts}, not within ${withinMs * patience} ms`);
  };
  const asks = async (path: string, body?: unknown): Promise<void> => {
    const answer = await (body === undefined ? server.get(path) : server.post(path, body));
    expect(answer?.status === 200, `${path} is answered with ${answer?.status}: ${JSON.stringify(answer)}`);
  };

  return {
    breaches: () => breaches,
    claims: (when) =>
      measure(`a claim of ${claimed} ${when}`, claimWithinMs, async () => {
        const found = await claimAndGiveBack(store, deepQueue);
        expect(found === claimed, `a claim ${when} found ${found} of ${claimed}`);
      }),
    pickUps: (when) =>
      measure(`one job of an idle queue ${when}`, pickUpWithinMs, async () => {
        const [jobId = ''] = await deps.enqueue(deps.idleQueue, 1);
        await until('it is completed', () => isCompleted(db, jobId));
      }),
    async answers(inTheDepth) {
      const root = '/api/v1/jobs';
      for (const path of [
        root,
        `${root}?queue=${deepQueue}&status=pending`,
        `${root}?queue=${deepQueue}&status=completed`,
        `${root}?page=50&page_size=100`,
        `${root}/${inTheDepth}`,
        `${root}/dead`,
        `${root}/queues`,
      ])
        await measure(`GET ${path}`, answerWithinMs, () => asks(path));
      await measure('pause and resume', answerWithinMs, async () => {
        await asks(`${root}/queues/${deepQueue}/pause`, {});
        await asks(`${root}/queues/${deepQueue}/resume`, {});
      });
      await asks(`${root}/queues/${deepQueue}/pause`, {});
      await until('nothing of a paused queue runs', () => isAtRest(db, deepQueue), {
        withinMs: pauseWithinMs * patience,
      });
      expect((await claimAndGiveBack(store, deepQueue)) === 0, 'a paused queue gives no job');
      const least = Math.min(await countPending(db, deepQueue), countedRows) * almost;
      await until(
        'the figures tell how deep it is',
        async () => (await server.metric('jobs_depth', `queue="${deepQueue}",status="pending"`)) >= least,
        { withinMs: figuresWithinMs * patience },
      );
      await asks(`${root}/queues/${deepQueue}/resume`, {});
      const begin = performance.now();
      await asks(`${root}/${inTheDepth}/cancel`, { reason: 'nobody wants it' });
      expect(performance.now() - begin <= answerWithinMs * patience, 'a cancel takes too long');
    },
  };
}

/** How many it was given. */
async function claimAndGiveBack(store: TestJobStore, queue: string): Promise<number> {
  const { jobs } = await store.claim({ queue, limit: claimed, leaseMs: 30_000 });
  await store.settle(
    queue,
    jobs.map((job) => ({ job, ran: null, outcome: 'unstarted' })),
  );
  return jobs.length;
}

async function isCompleted(db: Database, jobId: string): Promise<boolean> {
  const rows = await db.query(sql`
    SELECT 1 FROM jobs.job_queue WHERE job_id = ${jobId} AND status = 'completed'`);
  return rows.length > 0;
}

async function isAtRest(db: Database, queue: string): Promise<boolean> {
  const rows = await db.query(sql`
    SELECT 1 FROM jobs.job_queue WHERE queue = ${queue} AND status = 'running' LIMIT 1`);
  return rows.length === 0;
}

async function countPending(db: Database, queue: string): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM jobs.job_queue WHERE queue = ${queue} AND status = 'pending'`);
  return row?.count ?? 0;
}
