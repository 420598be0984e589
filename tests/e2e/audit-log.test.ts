import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Sql, sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** The audit log over HTTP. */
type Event = Readonly<{ seq: number; actor_id: string; action: string; resource: string; outcome: string }>;
type Listed = Readonly<{
  events: readonly Event[];
  pagination: Readonly<{ total_count: number; next_cursor: string | null }>;
}>;
type Verified = Readonly<{
  ok: boolean;
  blocks: number;
  events: number;
  unsealed: number;
  head: { block: number };
}>;

let system: TestSystem;
before(async () => {
  system = await startTestSystem();
  for (const queue of ['mail', 'push', 'sms'])
    await system.api.post(
      `/api/v1/jobs/queues/${queue}/pause`,
      { reason: `the ${queue} partner is away`, create: true },
      { 'x-actor': 'ada' },
    );
});
after(async () => {
  await system.drop();
});

const sealed = (): Promise<Verified> =>
  eventually(
    async () => {
      const { body } = await system.api.post<Verified>('/api/v1/audit/verify', {});
      assert.equal(body.unsealed, 0);
      return body;
    },
    { withinMs: 30_000 },
  );

test('events are listed newest first, by page and by filter', async () => {
  const get = async (query: string): Promise<Listed> =>
    (await system.api.get<Listed>(`/api/v1/audit?${query}`)).body;
  const first = await get('action=jobs:queues:pause&page_size=2&cursor=');
  assert.deepEqual(
    first.events.map(({ resource, actor_id }) => [resource, actor_id]),
    [
      ['jobs/queues/sms', 'ada'],
      ['jobs/queues/push', 'ada'],
    ],
  );
  const next = await get(`action=jobs:queues:pause&cursor=${first.pagination.next_cursor}`);
  assert.deepEqual(
    next.events.map(({ resource }) => resource),
    ['jobs/queues/mail'],
  );
  assert.equal((await get('resource=jobs/queues/mail&actor=ada')).pagination.total_count, 1);
  assert.equal((await get('outcome=denied')).pagination.total_count, 0);
  assert.equal((await get('until=2020-01-01T00:00:00Z')).pagination.total_count, 0);
});

test('activity shows what people did, without address and agent', async () => {
  const { body, text } = await system.api.get<{ items: readonly { actor: string; reason: string }[] }>(
    '/api/v1/activity?action=jobs:queues:pause&page_size=1',
  );
  assert.deepEqual([body.items[0]?.actor, body.items[0]?.reason], ['ada', 'the sms partner is away']);
  assert.doesNotMatch(text, /address|agent|127\.0\.0\.1/);
});

test('the running server seals events, exports them with their blocks, and verifies them', async () => {
  const { ok, blocks, events } = await sealed();
  assert.ok(ok && blocks >= 1 && events >= 3);
  const { text, headers } = await system.api.get('/api/v1/audit/export');
  assert.equal(headers.get('content-type'), 'application/x-ndjson');
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string });
  assert.deepEqual(
    [lines.filter(({ type }) => type === 'event').length, lines.filter(({ type }) => type === 'seal').length],
    [events, blocks],
  );
  assert.equal(lines.at(-1)?.type, 'seal');

  await system.db.transaction(async (tx) => {
    await tx.query(new Sql([`SET LOCAL session_replication_role = 'replica'`], []));
    await tx.query(sql`UPDATE audit.events SET reason = 'nothing' WHERE resource = 'jobs/queues/push'`);
  });
  const found = await system.api.post<{ ok: boolean; problem: string }>('/api/v1/audit/verify', {});
  assert.deepEqual([found.body.ok, found.body.problem], [false, 'events_changed']);
});
