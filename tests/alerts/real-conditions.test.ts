import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { openOutsideWorld, type OutsideWorld } from '../support/every-flow/outside-world.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { needsPromtool } from '../support/test-promtool.ts';
import { evaluateRules, type RuleCase } from './evaluate-rules.ts';
import { recordSamples, type Recorder } from './record-samples.ts';

/** What alerts are about, caused in a real server, and its scraped samples given to the real rules. */
describe('an alert fires when its condition is real, and is silent before', needsPromtool, () => {
  let world: OutsideWorld;
  let system: TestSystem;
  let recorder: Recorder;
  let causedAt: number;
  before(async () => {
    world = await openOutsideWorld();
    system = await startTestSystem({ kafka: 'local', env: world.env });
    recorder = recordSamples(system.url);
    await system.broker?.createTopic('quiet.dlq', 1);
    await eventually(async () => assert.match(await metrics(), /^saga_active\{/m));
    await eventually(async () => assert.match(await metrics(), /^dlq_accounting_missing_messages 0$/m));
    await eventually(async () =>
      assert.match(await metrics(), /^dlq_ingested_total\{topic="quiet.dlq"\} 0$/m),
    );
    await recorder.scrape(5);
    causedAt = recorder.minute() + 1;
    await causeAll();
    await eventually(async () => assertMeasured(await metrics()), { withinMs: 60_000 });
    await recorder.scrape();
    recorder.persist(30);
  });
  after(async () => {
    await system?.drop();
    await world.close();
  });

  const metrics = async (): Promise<string> => (await system.api.get('/metrics')).text;

  function assertMeasured(text: string): void {
    for (const line of [
      /^dlq_accounting_missing_messages [1-9]/m,
      /^dlq_messages\{status="DEAD",topic=".+"\} 1$/m,
      /^jobs_depth\{queue="lost",status="dead_letter"\} 1$/m,
      /^saga_compensations_stuck 1$/m,
      /^outbox_send_total\{outcome="dead"\} 1[2-9]/m,
      /^outbox_internal_dead [1-9]/m,
      /^jobs_lag_seconds\{queue="nobody"\} 9/m,
    ])
      assert.match(text, line);
    const lag = /^outbox_lag_seconds\{quantile="0.95"\} (\S+)$/m.exec(text)?.[1];
    assert.ok(Number(lag) > 60, `outbox_lag_seconds is ${lag}`);
  }

  async function causeAll(): Promise<void> {
    const { api, db, broker } = system;
    assert.ok(broker);
    await broker.createTopic('sudden.dlq', 1);
    const records = Array.from({ length: 300 }, (_, i) => ({
      topic: i < 150 ? 'quiet.dlq' : 'sudden.dlq',
      key: null,
      value: Buffer.from('{}'),
      // No legal name of a topic.
      headers: [{ key: Buffer.from('kafka_dlt-original-topic'), value: Buffer.from('no topic!') }],
    }));
    await broker.publish(records, { timeoutMs: 5000 });
    for (let i = 0; i < 12; i += 1) {
      const key = `refused-order-${i}`;
      const body = { destination: 'picky', idempotency_key: key, request: {} };
      await api.post('/api/v1/outbox/orders', body, { 'idempotency-key': key });
    }
    await eventually(async () => {
      const rows = await db.query(sql`SELECT 1 FROM dlq.dlq_messages`);
      assert.equal(rows.length, records.length);
    });
    const [{ id } = { id: '' }] = await db.query<{ id: string }>(
      sql`SELECT id FROM dlq.dlq_messages LIMIT 1`,
    );
    await api.post(`/api/v1/dlq/messages/${id}/dead`, { reason: 'test' });
    // Time that has passed, and what people or bugs have done to rows.
    await db.query(sql`
      UPDATE dlq.dlq_messages SET created_at = now() - interval '2 days'
      WHERE id = (SELECT id FROM dlq.dlq_messages WHERE status = 'PENDING' LIMIT 1)`);
    await db.query(sql`UPDATE dlq.source_partitions SET stored = stored - 3`);
    await db.query(sql`
      INSERT INTO platform.leases (name, succeeded_at) VALUES ('dlq.archive', now() - interval '3 days')
      ON CONFLICT (name) DO UPDATE SET succeeded_at = EXCLUDED.succeeded_at`);
    await db.query(sql`
      INSERT INTO jobs.job_queue (queue, payload, created_at, run_at, sort_at)
      SELECT 'nobody', '{}', at, at, at FROM (SELECT now() - interval '900 seconds' AS at) AS due`);
    await db.query(sql`
      INSERT INTO jobs.job_queue (queue, payload, status, completed_at) VALUES ('lost', '{}', 'dead_letter', now())`);
    await db.query(sql`SELECT outbox.add_order('{}', 'nobody-takes-it', 'unknown_here')`);
    await db.query(sql`
      UPDATE outbox.outbox_orders SET created_at = now() - interval '100 seconds' WHERE destination = 'unknown_here'`);
    await db.query(sql`SELECT outbox.add_order('{}', 'nobody-was-told', 'unknown_here')`);
    await db.query(sql`
      UPDATE outbox.outbox_orders SET status = 'dead', destination = '_notify_gone'
      WHERE idempotency_key = 'nobody-was-told'`);
    await db.query(sql`
      INSERT INTO saga.saga_states (workflow_name, status, needs_attention, stuck_step, stuck_op)
      VALUES ('buy', 'COMPENSATING', true, 0, 'COMPENSATE')`);
  }

  /** Of those that look at an increase, soon after it; of the others, when their `for` is over. */
  const conditions: readonly (readonly [
    alert: string,
    severity: RuleCase['severity'],
    minutesLater: number,
  ])[] = [
    ['DlqAccountingMismatch', 'page', 5],
    ['DlqPendingOld', 'ticket', 20],
    ['DlqDeadMessages', 'ticket', 20],
    ['ArchiveNotRunning', 'ticket', 10],
    ['DlqUnroutable', 'ticket', 2],
    ['DlqMessagesSurge', 'ticket', 2],
    ['OutboxLagHigh', 'page', 10],
    ['OutboxDeadSurge', 'page', 2],
    ['OutboxDeadOrders', 'ticket', 20],
    ['InternalOrdersDead', 'ticket', 10],
    ['JobsQueueLag', 'page', 10],
    ['JobsDeadLetters', 'ticket', 10],
    ['SagaCompensationStuck', 'page', 5],
    ['SagaNeedsAttention', 'ticket', 10],
  ];

  test(conditions.map(([alert]) => alert).join(', '), async () => {
    const series = recorder.series();
    const cases = conditions.flatMap(([alert, severity, minutesLater]): readonly RuleCase[] => [
      { alert, severity, series, at: causedAt - 1, fires: false },
      { alert, severity, series, at: causedAt + minutesLater, fires: true },
    ]);
    // Nobody had scraped the series of this topic before its records were counted.
    const sudden = (['DlqMessagesSurge', 'DlqUnroutable'] as const).map((alert): RuleCase => {
      const labels = 'topic="sudden.dlq"';
      return { alert, severity: 'ticket', labels, series, at: causedAt + 2, fires: true };
    });
    const quiet = (['Down', 'LoopStalled', 'ApiErrorBudgetBurn', 'StaleWrites'] as const).map(
      (alert): RuleCase => ({
        alert,
        severity: alert === 'StaleWrites' ? 'ticket' : 'page',
        series,
        at: causedAt,
        fires: false,
      }),
    );
    assert.equal(await evaluateRules([...cases, ...sudden, ...quiet]), '');
  });
});
