import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onceAborted } from '../../src/kernel/clock.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { startTestSystem } from '../../tests/support/start-system.ts';
import { openFulfilment } from './fulfilment.ts';

/** The whole demo against the whole system, one order right after another. */

type Row = Readonly<{
  order_id: string;
  status: string;
  compensation: string;
  stuck: string | null;
  log: string;
}>;

test('the demo shows sagas that are done, that are undone, and one that needs attention', async (t) => {
  const fulfilment = await openFulfilment();
  t.after(() => fulfilment.close());
  const system = await startTestSystem({ env: { SERVICES: JSON.stringify(fulfilment.services) } });
  t.after(() => system.drop());
  const stopping = new AbortController();
  let turns = 0;
  let stuckId: string | undefined;
  const running = fulfilment.run({
    redriveUrl: system.url,
    signal: stopping.signal,
    seed: 'any',
    onStuck: (sagaId) => void (stuckId = sagaId),
    async sleep(_ms, signal) {
      turns += 1;
      // After all kinds of orders it goes on slowly, to see what has become of them.
      const pauseMs = turns < 16 ? 0 : 100;
      await Promise.race([new Promise((resolve) => setTimeout(resolve, pauseMs)), onceAborted(signal)]);
    },
  });

  const sagas = async (): Promise<ReadonlyMap<string, Row>> => {
    const rows = await system.db.query<Row>(sql`
      SELECT s.correlation_id AS order_id, s.status, s.compensation, s.stuck_reason AS stuck,
             (SELECT string_agg(concat_ws(' ', l.action, l.step_name, l.status), ', ' ORDER BY l.started_at, l.step_index, l.attempt)
              FROM saga.saga_step_logs l WHERE l.saga_id = s.id) AS log
      FROM saga.saga_states s ORDER BY s.created_at DESC`);
    return new Map(rows.map((row) => [row.order_id.split('-').slice(0, -2).join('-'), row]));
  };
  const ends = {
    plain: ['COMPLETED', 'none'],
    flaky: ['COMPLETED', 'none'],
    heavy: ['COMPLETED', 'none'],
    'made-to-order': ['RUNNING', 'none'],
    'sold-out': ['FAILED', 'none'],
    declined: ['FAILED', 'done'],
    undeliverable: ['FAILED', 'done'],
    'late-refund': ['COMPENSATING', 'running'],
    'closed-card': ['COMPENSATING', 'stuck'],
  };
  const seen = await eventually(
    async () => {
      const found = await sagas();
      for (const [kind, end] of Object.entries(ends)) {
        const saga = found.get(kind);
        assert.deepEqual([saga?.status, saga?.compensation], end, kind);
      }
      assert.match(found.get('late-refund')?.log ?? '', /COMPENSATE charge FAILED, COMPENSATE/);
      assert.ok(stuckId !== undefined);
      return found;
    },
    { withinMs: 60_000 },
  );
  stopping.abort();
  await running;
  assert.equal(
    seen.get('flaky')?.log,
    'EXECUTE reserve SUCCESS, EXECUTE charge FAILED, EXECUTE charge SUCCESS, EXECUTE dispatch SUCCESS',
  );
  assert.equal(
    seen.get('declined')?.log,
    'EXECUTE reserve SUCCESS, EXECUTE charge FAILED, COMPENSATE reserve SUCCESS',
  );
  assert.match(
    seen.get('late-refund')?.log ?? '',
    /EXECUTE dispatch FAILED, COMPENSATE charge FAILED, COMPENSATE charge/,
  );
  assert.match(seen.get('closed-card')?.stuck ?? '', /the card is closed/);

  const retried = await system.api.post(`/api/v1/sagas/${stuckId}/steps/charge/retry`, {
    reason: 'once more',
  });
  assert.equal(retried.status, 200, retried.text);
});
