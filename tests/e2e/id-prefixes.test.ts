import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import { findIds } from '../../src/platform/postgres/find-ids.ts';
import type { Queryable } from '../../src/platform/postgres/database.ts';
import { sql, type Sql } from '../../src/platform/postgres/sql.ts';
import type { ErrorBody } from '../support/api-client.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** Every kind of item whose id is a UUID can be named by a prefix, archived or not. */

type Kind = Readonly<{
  command: string;
  route: string;
  table: Sql;
  archive: Sql | null;
  /** Default: `status`. */
  status?: Sql;
  add: (table: Sql, id: string) => Sql;
}>;

const kinds: readonly Kind[] = [
  {
    command: 'dlq',
    route: '/api/v1/dlq/messages/ids',
    table: sql`dlq.dlq_messages`,
    archive: sql`dlq.dlq_messages_archive`,
    add: (table, id) => sql`
      INSERT INTO ${table} (id, original_topic, error_message, status) VALUES (${id}, 'orders.v1', 'boom', 'DEAD')`,
  },
  {
    command: 'dlq redrive',
    route: '/api/v1/dlq/redrives/ids',
    table: sql`dlq.redrives`,
    archive: null,
    status: sql`state`,
    add: (table, id) => sql`
      INSERT INTO ${table} (id, state, filter, options, actor, reason)
      VALUES (${id}, 'failed', '{}', '{"rate_per_second": null, "order": "key"}', 'alice', 'fixed')`,
  },
  {
    command: 'jobs',
    route: '/api/v1/jobs/ids',
    table: sql`jobs.job_queue`,
    archive: null,
    add: (table, id) => sql`
      INSERT INTO ${table} (job_id, queue, payload, status) VALUES (${id}, 'mail', '{}', 'completed')`,
  },
  {
    command: 'saga',
    route: '/api/v1/sagas/ids',
    table: sql`saga.saga_states`,
    archive: sql`saga.saga_states_archive`,
    add: (table, id) => sql`
      INSERT INTO ${table} (id, workflow_name, current_step, status, created_at, updated_at, step_outputs,
                            deadline_over, pivot_opened, compensation, needs_attention, lease_epoch, lease_lost,
                            failed_rounds, runs_alone)
      VALUES (${id}, 'place-order', 1, 'COMPLETED', now(), now(), '{}', false, false, 'none', false, 0, false, 0, false)`,
  },
];

const alone = '0aa1df00-0000-7000-8000-000000000001';
const archived = '0aa1df10-0000-7000-8000-000000000001';
/** More than are listed, at both ends of the range of their prefix. */
const crowd = [
  ...Array.from({ length: 11 }, (_, i) => `0bb1df00-0000-7000-8000-${String(i).padStart(12, '0')}`),
  '0bb1dfff-ffff-ffff-ffff-ffffffffffff',
];

let system: TestSystem;
before(async () => {
  system = await startTestSystem();
  for (const { table, archive, add } of kinds) {
    await system.db.query(add(table, alone));
    await system.db.query(add(archive ?? table, archived));
    for (const id of crowd) await system.db.query(add(table, id));
  }
});
after(() => system.drop());

async function redrive(
  ...args: readonly string[]
): Promise<Readonly<{ code: number; out: string; err: string }>> {
  const said = { out: '', err: '' };
  const into = (stream: 'out' | 'err') => ({
    write: (data: string | Uint8Array): void => void (said[stream] += data.toString()),
  });
  const code = await runCli(args, {
    env: { REDRIVE_URL: system.url },
    stdin: new PassThrough(),
    stdout: into('out'),
    stderr: into('err'),
  });
  return { code, ...said };
}

for (const { command, route } of kinds) {
  test(`${command} show takes a unique prefix, with and without hyphens, also of an archived item`, async () => {
    for (const [prefix, id] of [
      ['0aa1df0', alone],
      ['0AA1DF00-0000-7', alone],
      ['0aa1df000000', alone],
      ['0aa1df1', archived],
    ] as const) {
      const { code, out, err } = await redrive(...command.split(' '), 'show', prefix);
      assert.deepEqual([code, err], [0, '']);
      assert.match(out, new RegExp(`^id +${id}$`, 'm'));
    }
  });

  test(`${command} show lists the candidates of an ambiguous prefix`, async () => {
    const { code, out, err } = await redrive(...command.split(' '), 'show', '0aa1df');
    assert.deepEqual([code, out], [2, '']);
    assert.match(
      err,
      /^redrive: 2 (message|job|saga|redrive)s have an id that begins with 0aa1df\n {2}ID +STATUS +AGE\n/,
    );
    assert.match(err, new RegExp(`^  ${alone}  \\w+ +(now|\\d+s ago)$`, 'm'));
    const json = await redrive(...command.split(' '), 'show', '0aa1df', '--json');
    const { error } = JSON.parse(json.err) as ErrorBody;
    assert.deepEqual(
      error.details.map(({ reason, message }) => [reason, message]),
      [
        ['ambiguous', alone],
        ['ambiguous', archived],
      ],
    );
  });

  test(`${command} show says when no id begins with the prefix, or when it is none`, async () => {
    const missing = await redrive(...command.split(' '), 'show', '0cc1df');
    assert.equal(missing.code, 1);
    assert.match(missing.err, /^redrive: no \w+ has an id that begins with 0cc1df\n$/);
    for (const text of ['0aa1d', 'orders', '1042']) {
      const { code, err } = await redrive(...command.split(' '), 'show', text);
      assert.equal(code, 2);
      assert.match(
        err,
        new RegExp(`^redrive: ${text} is not a \\w+ id: give a UUID, or at least its first 6`),
      );
    }
  });

  test(`${route} answers with ten ids and says that there are more`, async () => {
    type Ids = Readonly<{ ids: readonly Readonly<{ id: string; archived: boolean }>[]; has_more: boolean }>;
    const { body } = await system.api.get<Ids>(`${route}?prefix=0bb1df`);
    assert.deepEqual(
      body.ids.map(({ id }) => id),
      crowd.slice(0, 10),
    );
    assert.equal(body.has_more, true);
    const { body: last } = await system.api.get<Ids>(`${route}?prefix=0bb1dff`);
    assert.deepEqual([last.ids.map(({ id }) => id), last.has_more], [crowd.slice(-1), false]);
  });

  for (const prefix of ['', '0aa1d', '0aa1dg', "0aa1df'--", '0aa1df-00', '%', 'a'.repeat(40)])
    test(`${route} refuses the prefix "${prefix}"`, async () => {
      const { status, body } = await system.api.get<ErrorBody>(
        `${route}?prefix=${encodeURIComponent(prefix)}`,
      );
      assert.equal(status, 400);
      assert.equal(body.error.details[0]?.field, 'prefix');
    });

  test(`${route} reads primary keys only, and no further than its limit`, async () => {
    const {
      table,
      archive,
      status = sql`status`,
    } = kinds.find((kind) => kind.route === route) ?? assert.fail();
    const id = command === 'jobs' ? sql`job_id` : sql`id`;
    const tables = [
      { table, id, status, isArchive: false },
      ...(archive ? [{ table: archive, id, isArchive: true }] : []),
    ];
    const plans = await system.db.transaction(async (tx) => {
      await tx.query(sql`SET LOCAL enable_seqscan = off`);
      const explaining: Queryable = { query: (statement) => tx.query(sql`EXPLAIN ${statement}`) };
      const range = { first: alone, last: archived };
      return (await findIds(explaining, tables, range, { limit: 11 })) as unknown as readonly {
        'QUERY PLAN': string;
      }[];
    });
    const plan = plans.map((line) => line['QUERY PLAN']).join('\n');
    assert.equal(plan.match(/(Index|Index Only) Scan using \w+_pkey/g)?.length, tables.length, plan);
    assert.doesNotMatch(plan, /Seq Scan/);
  });
}

test('an action takes a prefix and names the item that it changed', async () => {
  const { code, out } = await redrive('dlq', 'reopen', '0aa1df0', '--reason', 'the consumer was fixed');
  assert.equal(code, 0);
  assert.match(out, new RegExp(`^${alone} PENDING`));
});

test('commands for several items take prefixes too', async () => {
  const { code, err } = await redrive('jobs', 'requeue', '0aa1df0', '0aa1df1', '--preview');
  assert.deepEqual([code, err], [0, '0 jobs would be requeued; nothing was changed\n']);
  const ambiguous = await redrive('jobs', 'requeue', '0aa1df0', '0aa1df');
  assert.equal(ambiguous.code, 2);
});
