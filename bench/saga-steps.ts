import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { Client } from 'pg';
import type { Answer } from '../src/saga/domain/judge-answer.ts';
import { openHttpService } from '../src/saga/run/services/http-service.ts';
import { storeWorkflow } from '../src/saga/define/workflows-table.ts';
import { createAddEvents } from '../src/saga/run/saga-events.ts';
import type { SendCall } from '../src/saga/run/services/service.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { addInternalOrders } from '../src/outbox/index.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { findRestate, installRestate, measureRestate } from './saga-restate.ts';
import { createBenchEngine, threeSteps, type BenchOptions } from './saga-support.ts';
import { openPostgres, printTable, timed } from './support.ts';

/**
 * Sagas of three steps whose participants are in this process and do nothing; no events.
 *   floor    their rows, written by the batch on the same tables: what is claimed, opened and closed, and no engine
 *   forward  all three steps are done
 *   undo     the third is refused, and the first two are undone
 *   HTTP     forward, with participants over loopback HTTP, and events into the outbox
 *   DBOS     a workflow of three steps, as many at once
 *   Restate  the same two sagas, as many at once, as it comes and with a partition for each core; only where it is
 *            installed: npm install --no-save --ignore-scripts @restatedev/restate-server@1.7.12
 *            @restatedev/restate-sdk@1.17.2
 * Goal: forward is five times the better peer as it comes (decision 0054). Then the time that one saga alone takes per
 * step: p50 under 5 ms. What the first sagas take is left out for all; they take turns, and the middle one of their
 * rounds counts.
 * node bench/saga-steps.ts [sagas] [at once] [rounds]
 */
const count = Number(process.argv[2] ?? 20_000);
const atOnce = Number(process.argv[3] ?? 200);
const rounds = Number(process.argv[4] ?? 3);
const peerCount = Math.min(count, 1000);
const warmUp = 5000;
/** Twice its default, with which it is half as fast again; still more change nothing on two cores. */
const dbosConnections = 20;
const dbosName = `DBOS (${peerCount} workflows, ${dbosConnections} connections)`;
const ground = await openPostgres();
const { url, db } = ground;

const done: Answer = { class: 'done', output: { id: 'r-1' } };
const refused: Answer = { class: 'refused', detail: 'no', isTimeout: false, isUnsent: false };

const participant = createServer((request, response) => {
  request.resume().on('end', () => response.end('{"id":"r-1"}'));
});
participant.listen(0, '127.0.0.1');
await once(participant, 'listening');
const service = openHttpService({
  type: 'http',
  name: 'nobody',
  baseUrl: `http://127.0.0.1:${(participant.address() as AddressInfo).port}`,
  maxInFlight: atOnce,
  isIdempotent: true,
  headers: {},
  tls: undefined,
});

const undo: SendCall = async ({ stepName, call }) =>
  stepName === 'ship' && call.op === 'EXECUTE' ? refused : done;
const addEvents = createAddEvents(addInternalOrders, systemClock);
const restate = await findRestate();
const cores = availableParallelism();
const asItComes = 'Restate as it comes';
const withPartitions = `Restate, ${cores} partitions`;

try {
  await storeWorkflow(db, threeSteps, { isFromFile: false });
  const measured = new Map<string, number[]>();
  const note = (name: string, perSecond: number): void =>
    void measured.set(name, [...(measured.get(name) ?? []), perSecond]);
  const startDbos = await openDbos();
  for (let round = 0; round < rounds; round += 1) {
    note('floor: the rows alone, by the batch', await measureFloor());
    note('ours, forward', await drain({ atOnce, send: async () => done }, 'COMPLETED'));
    note('ours, two undone after a refusal', await drain({ atOnce, send: undo }, 'FAILED'));
    note(
      'ours, forward, HTTP, events on',
      await drain({ atOnce, send: service.send, addEvents }, 'COMPLETED'),
    );
    note(dbosName, await startDbos());
    if (restate === null) continue;
    for (const [name, partitions] of [
      [asItComes, null],
      [withPartitions, cores],
    ] as const) {
      const rates = await measureRestate(restate, { count, atOnce, partitions, warmUp });
      note(`${name}, forward`, rates.forward);
      note(`${name}, two undone`, rates.undo);
    }
  }
  await DBOS.shutdown();
  const lines = [...measured].map(([name, all]) => ({ name, perSecond: middleOf(all) }));
  printTable(
    `${count.toLocaleString('en')} sagas of three steps, ${atOnce} at once, ${rounds} rounds`,
    lines,
  );
  printRatios(new Map(lines.map(({ name, perSecond }) => [name, perSecond])));
  await measureLatency();
} finally {
  await service.close();
  participant.close();
  await ground.stop();
}

function middleOf(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[all.length >> 1] ?? NaN;
}

function printRatios(rates: ReadonlyMap<string, number>): void {
  const times = (ours: string, theirs: string): string =>
    ((rates.get(ours) ?? NaN) / (rates.get(theirs) ?? NaN)).toFixed(1);
  const say = (text: string): void => void process.stdout.write(`  ${text}\n`);
  say(`ours, forward, against DBOS: ${times('ours, forward', dbosName)} times (goal 5)`);
  if (restate === null) return say(`Restate: not installed; to measure it, ${installRestate}`);
  for (const name of [asItComes, withPartitions])
    say(
      `ours against ${name}: forward ${times('ours, forward', `${name}, forward`)} times (goal 5), ` +
        `two undone ${times('ours, two undone after a refusal', `${name}, two undone`)} times`,
    );
}

async function empty(): Promise<void> {
  await db.transaction(async (tx) => {
    // The tables of sagas refuse to be emptied.
    await tx.query(sql`SET LOCAL session_replication_role = replica`);
    await tx.query(sql`TRUNCATE saga.saga_states, saga.saga_step_logs, outbox.outbox_orders`);
  });
  await db.query(sql`VACUUM ANALYZE`);
  await db.query(sql`CHECKPOINT`);
}

/** The first ones are over, and in the tables, when the time begins. */
async function drain(options: BenchOptions, status: string): Promise<number> {
  await empty();
  const start = (sagas: number): Promise<unknown> =>
    db.query(sql`
      SELECT count(*) FROM generate_series(1, ${sagas}::int) AS i, saga.start_saga('bench', jsonb_build_object('i', i))`);
  await start(warmUp);
  const first = createBenchEngine(db, options);
  await first.start();
  await first.ended(warmUp);
  await first.stop();
  await start(count);
  const engine = createBenchEngine(db, options);
  const seconds = await timed(async () => {
    await engine.start();
    await engine.ended(count);
  });
  await engine.stop();
  const [row] = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM saga.saga_states WHERE status = ${status}`);
  if (row?.count !== BigInt(warmUp + count)) throw new Error(`${row?.count} of ${count} sagas are ${status}`);
  return count / seconds;
}

async function measureFloor(): Promise<number> {
  await empty();
  await db.query(sql`
    INSERT INTO saga.saga_states (id, workflow_name, status, wake_at, payload)
    SELECT gen_random_uuid(), 'bench', 'STARTED', now(), '{}' FROM generate_series(1, ${count}::int)`);
  const batch = 200;
  const claimAndRun = async (): Promise<void> => {
    for (;;) {
      const rows = await db.query<{ id: string }>(sql`
        WITH picked AS MATERIALIZED (
          SELECT id FROM saga.saga_states WHERE wake_at <= now() ORDER BY wake_at LIMIT ${batch} FOR UPDATE SKIP LOCKED)
        UPDATE saga.saga_states s SET wake_at = NULL, lease_owner = 'bench' FROM picked WHERE s.id = picked.id
        RETURNING s.id`);
      if (rows.length === 0) return;
      const ids = rows.map(({ id }) => id);
      for (let at = 0; at <= threeSteps.steps.length; at += 1) await writeStep(ids, at);
    }
  };
  return count / (await timed(() => Promise.all([claimAndRun(), claimAndRun()])));
}

/** Closes the step before, and opens this one or ends the sagas. */
async function writeStep(ids: readonly string[], at: number): Promise<void> {
  const isLast = at === threeSteps.steps.length;
  await db.query(sql`
    WITH moved AS (
      UPDATE saga.saga_states s SET current_step = ${at}, status = ${isLast ? 'COMPLETED' : 'RUNNING'},
             lease_owner = ${isLast ? null : 'bench'}
      FROM unnest((SELECT ${ids}::uuid[])) AS held (id) WHERE s.id = held.id RETURNING s.id
    ), closed AS (
      UPDATE saga.saga_step_logs l SET status = 'SUCCESS', completed_at = clock_timestamp(), response_payload = '{"id":1}'
      FROM moved WHERE l.saga_id = moved.id AND l.step_index = ${at - 1} AND l.action = 'EXECUTE' AND l.attempt = 1
    ), opened AS (
      INSERT INTO saga.saga_step_logs (saga_id, step_index, step_name, action, attempt, request_payload)
      SELECT id, ${at}, 'step', 'EXECUTE', 1, '{}' FROM moved WHERE NOT ${isLast}
    )
    SELECT count(*) FROM moved`);
}

async function openDbos(): Promise<() => Promise<number>> {
  const admin = new Client({ connectionString: url });
  await admin.connect();
  await admin.query('CREATE DATABASE dbos_bench');
  await admin.end();
  const target = new URL(url);
  target.pathname = '/dbos_bench';
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: target.href,
    systemDatabasePoolSize: dbosConnections,
    logLevel: 'error',
  });
  const nothing = async (): Promise<{ id: string }> => ({ id: 'r-1' });
  const peerWorkflow = DBOS.registerWorkflow(
    async () => {
      for (const { name } of threeSteps.steps) await DBOS.runStep(nothing, { name });
    },
    { name: 'three-steps' },
  );
  await DBOS.launch();
  const run = async (workflows: number): Promise<void> => {
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < workflows) {
        next += 1;
        await peerWorkflow();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  };
  await run(peerCount / 2);
  return async () => peerCount / (await timed(() => run(peerCount)));
}

/** One saga at a time: from the start to the end, by the number of steps. */
async function measureLatency(): Promise<void> {
  await empty();
  const tries = 200;
  let onEnd = (): void => {};
  const engine = createBenchEngine(db, {
    atOnce,
    send: async ({ stepName }) => {
      if (stepName === 'ship') setImmediate(() => onEnd());
      return done;
    },
  });
  await engine.start();
  const times: number[] = [];
  for (let i = 0; i < tries; i += 1) {
    const called = Promise.withResolvers<void>();
    onEnd = called.resolve;
    const begin = performance.now();
    await db.query(sql`SELECT saga.start_saga('bench', '{}'::jsonb)`);
    await called.promise;
    times.push((performance.now() - begin) / threeSteps.steps.length);
  }
  await engine.stop();
  const sorted = times.toSorted((a, b) => a - b);
  process.stdout.write(
    `  one saga at a time: p50 ${sorted[tries / 2]?.toFixed(1)} ms a step, the start included (goal 5)\n`,
  );
}
