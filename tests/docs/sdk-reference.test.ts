import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Pool, type PoolClient } from 'pg';
import type {
  AddedOrder,
  EnqueuedJob,
  Guarded,
  JobWorkers,
  SagaGuard,
  SagaWorkflow,
  StartedSaga,
} from '../../src/sdk/index.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { readDocBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { newStep } from '../support/guarded-steps.ts';
import { frames } from './frames.ts';
import { createProject, moduleOf, type Project } from './run-block.ts';

/** docs/reference/sdk.md names every export and every option, and its examples do what the page says. */

const root = fileURLToPath(new URL('../../', import.meta.url));
const page = await readFile(`${root}docs/reference/sdk.md`, 'utf8');

let project: Project;
let database: TestDatabase;
let pool: Pool;
let tx: PoolClient;

before(async () => {
  const blocks = (await readDocBlocks()).filter(
    ({ id, language }) => id.startsWith('docs/reference/sdk.md > ') && language === 'ts',
  );
  project = await createProject();
  await project.compile(
    blocks.map((block) => moduleOf(frames[block.id] ?? assert.fail(`${block.id} has no frame`), block)),
  );
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url });
  tx = await pool.connect();
});

after(async () => {
  tx?.release();
  await pool?.end();
  await database?.drop();
  await project?.remove();
});

test('the page names every export of the library', async () => {
  const index = await readFile(`${root}src/sdk/index.ts`, 'utf8');
  const names = [...index.matchAll(/^export (?:type )?\{([^}]+)\}/gm)].flatMap(([, list = '']) =>
    list.split(',').map((name) => name.trim()),
  );
  assert.ok(names.length > 40);
  assert.deepEqual(
    names.filter((name) => name !== '' && !isNamed(name)),
    [],
  );
});

test('the page names every option and every function of the objects', async () => {
  const declarations = await readFile(`${root}tests/e2e/snapshots/sdk.txt`, 'utf8');
  const types = [...declarations.matchAll(/^export (?:type|declare const) (\w+)[^\n]*\{\n([^]*?)^\}/gm)];
  const fields = types
    .filter(([, type = '']) =>
      /(Options|NewOrder|NewJob|^Job|JobContext|LongAction|SagaGuard|outbox|jobs)$/.test(type),
    )
    .flatMap(([, type, body = '']) =>
      [...body.matchAll(/^ {4}(?:readonly )?(\w+)/gm)].map(([, field = '']) => [type, field] as const),
    );
  assert.ok(fields.length > 40, `only ${fields.length} fields`);
  assert.deepEqual(
    fields.filter(([, field]) => !isNamed(field)).map((field) => field.join('.')),
    [],
  );
});

/** In code: between back-quotes, or in an example. */
function isNamed(name: string): boolean {
  const code = [...page.matchAll(/```[^]*?```|`[^`\n]+`|<code>.*?<\/code>/g)].map(([text]) => text);
  return code.some((text) => new RegExp(`\\b${name}\\b`).test(text));
}

test('the example of outbox.add adds an order', async () => {
  const { added } = (await project.run('sdk-outbox', { tx })) as { added: AddedOrder };
  assert.equal(added.outcome, 'created');
});

test('the example of jobs.enqueueMany adds three jobs, and one with a used key is a duplicate', async () => {
  type Added = Readonly<{ one: EnqueuedJob; many: readonly EnqueuedJob[] }>;
  const first = (await project.run('sdk-enqueue', { tx })) as Added;
  assert.deepEqual(
    [first.one, ...first.many].map(({ duplicate }) => duplicate),
    [false, false, false],
  );
  const second = (await project.run('sdk-enqueue', { tx })) as Added;
  assert.deepEqual([second.one.jobId, second.one.duplicate], [first.one.jobId, true]);
  const delayed = await database.db.query(sql`
    SELECT count(*)::int AS jobs FROM jobs.job_queue WHERE run_at > clock_timestamp() + interval '50 minutes'`);
  assert.deepEqual(delayed, [{ jobs: 2 }]);
});

test('the example of jobs.workers settles each job as its handler signals', async () => {
  const events: string[] = [];
  const callPartner = async ({ status }: { status: number }): Promise<number> => status;
  const { workers } = await project.run('sdk-workers', { pool, events, callPartner });
  for (const status of [200, 202, 404, 429, 503])
    await tx.query(`SELECT jobs.enqueue('calls', $1)`, [JSON.stringify({ status })]);
  await eventually(async () => {
    const rows = await database.db.query(sql`
      SELECT payload ->> 'status' AS answer, status, retry_count AS failures FROM jobs.job_queue
      WHERE queue = 'calls' ORDER BY 1`);
    assert.deepEqual(rows, [
      { answer: '200', status: 'completed', failures: 0 },
      { answer: '202', status: 'pending', failures: 0 },
      { answer: '404', status: 'dead_letter', failures: 1 },
      { answer: '429', status: 'pending', failures: 0 },
      { answer: '503', status: 'failed', failures: 1 },
    ]);
  });
  await (workers as JobWorkers).stop();
  assert.ok(events.includes('finished'));
});

test('the example of saga.start registers its workflow and starts one saga per key', async () => {
  type Started = Readonly<{ checkout: SagaWorkflow<unknown>; started: StartedSaga }>;
  const { checkout, started } = (await project.run('sdk-saga', { tx })) as Started;
  assert.equal(started.outcome, 'started');
  const { steps, ...head } = JSON.parse(checkout.text) as { steps: readonly { input: unknown }[] };
  assert.deepEqual(head, { name: 'checkout', deadline: '10m', undo_for: '48h', wait_for_service: '30m' });
  assert.deepEqual(
    steps.map(({ input }) => input),
    [{ sku: '${input.sku}', note: 'order ${input.id}' }, { coupon: '${input.coupon}' }],
  );
  assert.equal(((await project.run('sdk-saga', { tx })) as Started).started.outcome, 'replayed');
});

test('the example of sagaGuard charges once, refuses, refunds, and packs while the saga polls', async () => {
  await pool.query(`CREATE SCHEMA shop; CREATE TABLE shop.charges (id text, amount int);
    CREATE TABLE shop.parcels (id text, label text)`);
  const { migration, guard, charge, refund, pack, http, grpc } = (await project.run('sdk-guard', {
    pool,
    packParcel: async () => 'A-1',
  })) as Record<'charge' | 'refund' | 'pack', Guarded> &
    Readonly<{ migration: string; guard: SagaGuard; http: Server; grpc: object }>;
  await pool.query(migration);
  await guard.migrate();
  const [step, other, parcel] = [newStep('charge'), newStep('charge'), newStep('pack')];

  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/`;
  const headers = step.action().headers as Record<string, string>;
  for (let round = 0; round < 2; round += 1) {
    const answer = await fetch(url, { method: 'POST', headers, body: '{"amount":50}' });
    assert.equal(answer.status, 200);
  }
  http.close();
  assert.equal((await pool.query('SELECT FROM shop.charges')).rowCount, 1);
  assert.equal((await charge({ ...other.action(), body: { amount: 5000 } })).status, 422);
  assert.equal((await refund({ ...step.undo(), body: null })).status, 204);
  assert.equal((await pool.query('SELECT FROM shop.charges')).rowCount, 0);

  assert.equal((await pack({ ...parcel.action(), body: null })).status, 202);
  await eventually(async () => assert.equal((await pack({ ...parcel.action(), body: null })).status, 200));
  assert.deepEqual(Object.keys(grpc), ['Refund', 'Pack']);
  assert.equal(await guard.cleanUp(), 0);
  assert.equal(await guard.complete({ sagaId: randomUUID(), step: 'none' }, () => null), 'unknown');
  await guard.stop();
});
