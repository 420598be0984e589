import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { fastEnv } from '../support/outbox-system.ts';
import { startSagaSystem, step, type SagaSystem } from '../support/saga-system.ts';
import { headerTexts, needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** What happens to sagas, as the topic of a real Kafka tells it: nothing is lost, and each saga's story is in order. */

type Told = Readonly<{
  key: string;
  idempotencyKey: string;
  offset: bigint;
  event: Readonly<{
    saga_id: string;
    event_type: string;
    correlation_id: string | null;
    workflow_name: string;
    payload: Readonly<Record<string, unknown>>;
    timestamp: string;
  }>;
}>;

describe('The events of sagas', needsKafka, () => {
  let kafka: TestKafka;
  let topic: string;
  before(async () => {
    kafka = openTestKafka();
    topic = await kafka.createTopic('saga.state_changed.v1', 3);
  });
  after(() => kafka.close());

  const eventsEnv = (events: string) => ({ ...kafka.env, ...fastEnv, SAGA_EVENTS_TOPIC: events });

  const read = async (name: string): Promise<readonly Told[]> =>
    (await kafka.read(name)).map(({ key, value, headers, offset }) => ({
      key: String(key),
      idempotencyKey: new Map(headerTexts(headers)).get('idempotency-key') ?? '',
      offset,
      event: JSON.parse(String(value)) as Told['event'],
    }));

  /** The story of a saga, as its partition has it. */
  const storyOf = (records: readonly Told[], sagaId: string): readonly string[] =>
    records
      .filter(({ key }) => key === sagaId)
      .toSorted((a, b) => Number(a.offset - b.offset))
      .map(({ event }) => event.event_type.replace('SAGA_', ''));

  const allSent = (at: SagaSystem) =>
    eventually(
      async () => {
        const [row] = await at.system.db.query<{ unsent: number }>(sql`
          SELECT count(*)::int AS unsent FROM outbox.outbox_orders
          WHERE destination = '_saga_events' AND status <> 'sent'`);
        assert.equal(row?.unsent, 0);
      },
      { withinMs: 60_000 },
    );

  test('tell every change of many sagas, of each in its order', async (t) => {
    const at = await startSagaSystem({ kafka: 'real', env: eventsEnv(topic) });
    t.after(() => at.drop());
    at.shop.setScript(({ what, body }) => {
      const { end } = body as { end: string };
      if (end === 'FAILED' && what === 'charge')
        return { status: 409, body: { error: 'no money \u0000 \ud800' } };
      return end === 'STUCK' && what !== 'reserve' ? { status: 422 } : undefined;
    });
    const workflow = await at.register([step('reserve'), step('charge')]);
    const ends = ['COMPLETED', 'FAILED', 'STUCK'] as const;
    const sagas = await Promise.all(
      Array.from({ length: 60 }, async (_, i) => {
        const end = ends[i % 3] ?? 'COMPLETED';
        const more = i === 0 ? { correlation_id: 'order-117' } : {};
        return { end, id: await at.start(workflow, { payload: { end }, ...more }) };
      }),
    );
    for (const { id, end } of sagas) await (end === 'STUCK' ? at.waitsForPerson(id) : at.becomes(id, end));
    await allSent(at);

    const stories = {
      COMPLETED: ['STARTED', 'RUNNING', 'COMPLETED'],
      FAILED: ['STARTED', 'RUNNING', 'COMPENSATING', 'FAILED'],
      STUCK: ['STARTED', 'RUNNING', 'COMPENSATING', 'COMPENSATION_STUCK'],
    };
    const records = await read(topic);
    for (const { id, end } of sagas) assert.deepEqual(storyOf(records, id), stories[end], id);
    assert.equal(new Set(records.map(({ idempotencyKey }) => idempotencyKey)).size, records.length);

    const [first] = sagas;
    const begun = records.find(({ key }) => key === first?.id);
    assert.deepEqual(Object.keys(begun?.event ?? {}).toSorted(), [
      'correlation_id',
      'event_type',
      'payload',
      'saga_id',
      'timestamp',
      'workflow_name',
    ]);
    for (const { key, event } of records) {
      assert.equal(event.correlation_id, key === first?.id ? 'order-117' : null);
      assert.equal(event.workflow_name, workflow);
    }
    assert.deepEqual(
      [begun?.event.saga_id, begun?.event.event_type, begun?.event.payload],
      [
        first?.id,
        'SAGA_STARTED',
        { workflow_name: workflow, status: 'STARTED', current_step: 0, error_message: null },
      ],
    );
    assert.match(begun?.event.timestamp ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
    const failed = records.find(({ event }) => event.event_type === 'SAGA_FAILED');
    assert.match(String(failed?.event.payload['error_message']), /^charge: /);
    const ledger = await at.system.db.query(sql`SELECT 1 FROM outbox.idempo_ledger`);
    assert.deepEqual(ledger, [], 'they need no ledger');
  });

  test('wait for a topic that is not there, and keep their sagas from the archive until they are told', async (t) => {
    const late = kafka.name('made.later.v1');
    const database = await createTestDatabase();
    t.after(() => database.drop());
    const start = () => startSagaSystem({ kafka: 'real', env: eventsEnv(late), database });
    const count = async (archived: boolean): Promise<number> => {
      const [row] = await database.db.query<{ count: number }>(
        archived
          ? sql`SELECT count(*)::int AS count FROM saga.saga_states_archive`
          : sql`SELECT count(*)::int AS count FROM saga.saga_states`,
      );
      return row?.count ?? 0;
    };
    const at = await start();
    const id = await at.startOf([step('reserve')]);
    await at.becomes(id, 'COMPLETED');
    await at.drop();
    await age(database.db);

    // The first walk of the retention follows the start. What comes later in it has no events, and goes.
    const again = await start();
    await eventually(async () => assert.equal(await count(true), 1));
    assert.equal(await count(false), 1, 'it stays');
    await kafka.createTopic('made.later.v1');
    await allSent(again);
    assert.deepEqual(storyOf(await read(late), id), ['STARTED', 'RUNNING', 'COMPLETED']);
    assert.equal(again.shop.calls.length, 0);
    await again.drop();

    const last = await start();
    t.after(() => last.drop());
    await eventually(async () => assert.deepEqual([await count(false), await count(true)], [0, 2]));
    assert.equal((await last.told(id)).saga.status, 'COMPLETED', 'the API finds it in the archive');
  });
});

/** As if all had been started and ended long ago; and with one behind them that never told anybody anything. */
async function age(db: Database): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(sql`ALTER TABLE saga.saga_states DISABLE TRIGGER update_saga_states_updated_at`);
    await tx.query(sql`
      UPDATE saga.saga_states SET created_at = now() - interval '90 days', updated_at = now() - interval '90 days'`);
    await tx.query(sql`ALTER TABLE saga.saga_states ENABLE TRIGGER update_saga_states_updated_at`);
    await tx.query(sql`
      INSERT INTO saga.saga_states (workflow_name, status, created_at, updated_at)
      VALUES ('silent', 'COMPLETED', now() - interval '80 days', now() - interval '80 days')`);
  });
}

test('an event that was refused for good shows in readiness', async (t) => {
  const at = await startSagaSystem({ kafka: 'local', env: fastEnv });
  t.after(() => at.drop());
  const { api, db } = at.system;
  const check = async (): Promise<string | undefined> => {
    type Readiness = Readonly<{ checks: Readonly<Record<string, Readonly<{ status: string }>>> }>;
    return (await api.get<Readiness>('/readyz')).body.checks['saga_events']?.status;
  };
  assert.equal(await check(), 'healthy');
  await at.becomes(await at.startOf([step('reserve')]), 'COMPLETED');
  await eventually(async () => {
    const statuses = await db.query(sql`SELECT DISTINCT status FROM outbox.outbox_orders`);
    assert.deepEqual(statuses, [{ status: 'sent' }]);
  });
  await db.query(sql`
    UPDATE outbox.outbox_orders SET status = 'dead', last_error = 'BAD_REQUEST: too large'
    WHERE id = (SELECT min(id) FROM outbox.outbox_orders WHERE destination = '_saga_events')`);
  await eventually(async () => assert.equal(await check(), 'degraded'));
});

test('without Kafka nobody is told, and nothing is written to be told', async (t) => {
  const at = await startSagaSystem({ kafka: 'off' });
  t.after(() => at.drop());
  await at.becomes(await at.startOf([step('reserve')]), 'COMPLETED');
  assert.deepEqual(await at.system.db.query(sql`SELECT 1 FROM outbox.outbox_orders`), []);
});
