import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startOutboxSystem, type OutboxSystem } from '../support/outbox-system.ts';
import type { PartnerAct } from '../support/partner.ts';

/** The metrics of the outbox after a mix of orders: sent, failing, dead, hanging, waiting and blocked. */

const ok: PartnerAct = { act: 'ok' };
const unavailable: PartnerAct = { act: 'status', status: 503, effect: false };

describe('The metrics of the outbox', () => {
  let outbox: OutboxSystem;
  before(async () => {
    outbox = await startOutboxSystem({
      destinations: () => ({ limited: {}, broken: {}, slow: {}, fine: {} }),
      env: { OUTBOX_PROBE_INITIAL_MS: '60000', OUTBOX_PROBE_MAX_MS: '60000' },
    });
  });
  after(async () => {
    outbox.partner.release();
    await outbox.system.stop();
    await outbox.conclude();
  });

  /** `name{labels}` and its value. */
  const figures = async (): Promise<ReadonlyMap<string, number>> => {
    const { text } = await outbox.system.api.get('/metrics');
    const lines = text.split('\n').filter((line) => line.startsWith('outbox_'));
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
    );
  };

  test('count attempts by outcome and by retries', async () => {
    for (let i = 0; i < 5; i++) await outbox.becomes(await outbox.order(), 'sent');
    await outbox.becomes(await outbox.order({ does: [unavailable, unavailable, ok] }), 'sent');
    await outbox.becomes(await outbox.order({ does: [{ act: 'conflict', kind: 'processed' }] }), 'sent');
    await outbox.becomes(
      await outbox.order({ does: [{ act: 'status', status: 400, effect: false }] }),
      'dead',
    );
    // A row is stored before it is counted.
    const now = await eventually(async () => {
      const found = await figures();
      assert.equal(found.get('outbox_retry_count_count'), 8);
      return found;
    });
    const ends = ['success', 'retry', 'dead', 'conflict_processed'].map((outcome) =>
      now.get(`outbox_send_total{outcome="${outcome}"}`),
    );
    assert.deepEqual(ends, [6, 2, 1, 1]);
    const retries = ['0', '1', '2', '+Inf'].map((le) => now.get(`outbox_retry_count_bucket{le="${le}"}`));
    assert.deepEqual([...retries, now.get('outbox_retry_count_sum')], [7, 7, 8, 8, 2]);
  });

  test('count claims by whether they found orders', async () => {
    const now = await figures();
    const full = now.get('outbox_dequeue_total{result="success"}') ?? 0;
    assert.ok(full >= 1 && full <= 10, `${full} claims for 10 attempts`);
    assert.ok((now.get('outbox_dequeue_total{result="empty"}') ?? 0) > 0);
  });

  test('show what is being sent, how long orders wait, and which circuits are open', async () => {
    const { db } = outbox.system;
    for (let i = 0; i < 3; i++) await outbox.order({ destination: 'slow', does: [{ act: 'hold' }] });
    for (let i = 0; i < 5; i++) await outbox.order({ destination: 'broken', does: [unavailable] });
    await outbox.order({ destination: 'limited', does: [{ act: 'later', status: 429, afterS: 600 }] });
    await db.query(sql`
      SELECT outbox.add_order('{}', 'waiting-' || n, 'unknown_here') FROM generate_series(1, 94) AS n`);
    await db.query(sql`
      UPDATE outbox.outbox_orders SET created_at = now() - interval '100 seconds'
      WHERE destination = 'unknown_here'`);
    const now = await eventually(async () => {
      const found = await figures();
      assert.deepEqual(
        [
          found.get('outbox_inflight'),
          found.get('outbox_circuit_open{destination="broken"}'),
          found.get('outbox_throttle{destination="limited"}'),
          found.get('outbox_orders{destination="unknown_here",status="waiting"}'),
        ],
        [3, 1, 1, 94],
      );
      return found;
    });
    for (const quantile of ['0.5', '0.95', '0.99']) {
      const lag = now.get(`outbox_lag_seconds{quantile="${quantile}"}`) ?? 0;
      assert.ok(lag >= 100 && lag < 160, `${quantile}: ${lag} s`);
    }
    assert.equal(now.get('outbox_circuit_open{destination="fine"}'), 0);
    assert.equal(now.get('outbox_throttle{destination="fine"}'), undefined);
    assert.equal(now.get('outbox_orders{destination="broker",status="dead"}'), 1);
  });
});
