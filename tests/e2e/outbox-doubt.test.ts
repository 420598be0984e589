import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { storyOf } from '../support/outbox-orders.ts';
import { startOutboxSystem, type OutboxSystem } from '../support/outbox-system.ts';
import { startPartner, type Partner, type PartnerAct } from '../support/partner.ts';

/** An attempt may have had its effect: when the order is sent again, when its status is asked, and when it dies. */

const ok: PartnerAct = { act: 'ok' };
const hang: PartnerAct = { act: 'hang', effect: false };
const hangAfterEffect: PartnerAct = { act: 'hang', effect: true };
const error: PartnerAct = { act: 'status', status: 500, effect: false };
const refusal: PartnerAct = { act: 'status', status: 400, effect: false };

describe('In doubt', { concurrency: true }, () => {
  let outbox: OutboxSystem;
  let silent: Partner;
  let failing: Partner;
  before(async () => {
    silent = await startPartner({ script: { status: 'hang' } });
    failing = await startPartner({ script: { status: 'error' } });
    const none = { idempotency: 'none', timeout_ms: 1200 };
    const brief = { dedup_window: '1s', timeout_ms: 1200 };
    outbox = await startOutboxSystem({
      destinations: ({ statusUrl }) => ({
        blind: none,
        // One per failing order: together they would open a circuit.
        asking: { ...none, status_url: statusUrl },
        never_knowing: { ...none, status_url: statusUrl },
        refusing: { ...none, status_url: statusUrl },
        asking_later: { ...none, status_url: statusUrl },
        wording: {
          ...none,
          status_url: statusUrl,
          status: { field: 'status', done: 'done', absent: ['absent', 'never'] },
        },
        silent: { ...none, status_url: silent.statusUrl },
        failing: { ...none, status_url: failing.statusUrl },
        brief,
        brief_asking: { ...brief, status_url: statusUrl },
      }),
      env: { OUTBOX_RETRY_MAX: '2' },
    });
  });
  after(async () => {
    await Promise.all([silent.stop(), failing.stop()]);
    await outbox.conclude();
  });

  for (const destination of ['asking', 'wording']) {
    test(`an order to ${destination} whose effect the destination confirms is sent, with its outside id`, async () => {
      const row = await outbox.becomes(await outbox.order({ destination, does: [hangAfterEffect] }), 'sent');
      assert.equal(outbox.requestsOf(row).length, 1);
      const known = JSON.parse(outbox.partner.ledger.get(row.idempotency_key)?.answer ?? '') as {
        broker_order_id: string;
      };
      assert.equal(row.response?.broker_order_id, known.broker_order_id);
    });

    test(`an order to ${destination} that the destination does not know is sent again`, async () => {
      const row = await outbox.becomes(await outbox.order({ destination, does: [hang, ok] }), 'sent');
      assert.deepEqual([outbox.requestsOf(row).length, row.retry_count, row.in_doubt], [2, 1, true]);
    });
  }

  test('an order that the destination never knows dies when its retries are used up, and stays in doubt', async () => {
    const row = await outbox.becomes(
      await outbox.order({ destination: 'never_knowing', does: [error] }),
      'dead',
    );
    assert.match(row.last_error ?? '', /^UNKNOWN: BROKER_5XX: HTTP 500/);
    assert.deepEqual([outbox.requestsOf(row).length, row.retry_count], [3, 2]);
  });

  test('an order in doubt that is refused dies at once, and stays in doubt', async () => {
    const row = await outbox.becomes(
      await outbox.order({ destination: 'refusing', does: [error, refusal] }),
      'dead',
    );
    assert.match(row.last_error ?? '', /^UNKNOWN: BAD_REQUEST: HTTP 400/);
    assert.equal(outbox.requestsOf(row).length, 2);
  });

  for (const [destination, why] of [
    ['silent', /no complete answer within/],
    ['failing', /HTTP 500/],
    ['blind', /^UNKNOWN: NETWORK_TIMEOUT/],
  ] as const)
    test(`an order to ${destination} is dead UNKNOWN after one request`, async () => {
      const row = await outbox.becomes(
        await outbox.order({ destination, does: [hangAfterEffect, ok] }),
        'dead',
      );
      assert.match(row.last_error ?? '', /^UNKNOWN: NETWORK_TIMEOUT: /);
      assert.match(row.last_error ?? '', why);
      assert.deepEqual([outbox.requestsOf(row).length, row.in_doubt], [1, true]);
      if (destination === 'failing') assert.ok(failing.questionCount() > 1, 'it is asked more than once');
    });

  test('after the deduplication window nothing is sent again', async () => {
    const row = await outbox.becomes(
      await outbox.order({ destination: 'brief', does: [hangAfterEffect, ok] }),
      'dead',
    );
    assert.match(row.last_error ?? '', /^UNKNOWN: NETWORK_TIMEOUT: /);
    assert.equal(outbox.requestsOf(row).length, 1);
  });

  test('after the deduplication window the destination is asked', async () => {
    const destination = 'brief_asking';
    const done = await outbox.becomes(await outbox.order({ destination, does: [hangAfterEffect] }), 'sent');
    assert.equal(outbox.requestsOf(done).length, 1);
    const absent = await outbox.becomes(await outbox.order({ destination, does: [hang, ok] }), 'sent');
    assert.equal(outbox.requestsOf(absent).length, 2);
  });

  /** As a process leaves it that was killed while it sent. */
  const abandoned = async (destination: string, key: string): Promise<bigint> =>
    outbox.system.db.transaction(async (tx) => {
      const [added] = await tx.query<{ id: bigint }>(
        sql`SELECT id FROM outbox.add_order('{"n": 1}', ${key}, ${destination})`,
      );
      assert.ok(added);
      await tx.query(sql`
        UPDATE outbox.outbox_orders
        SET status = 'sending', first_sent_at = now(), lease_owner = 'gone', lease_epoch = nextval('platform.lease_epochs'),
            lease_until = now() - interval '1 second'
        WHERE id = ${added.id}`);
      await tx.query(sql`
        INSERT INTO outbox.outbox_audit
          (outbox_id, status_from, status_to, retry_count, idempotency_key, lease_epoch, actor)
        SELECT id, 'queued', 'sending', 0, idempotency_key, lease_epoch, 'gone'
        FROM outbox.outbox_orders WHERE id = ${added.id}`);
      return added.id;
    });

  test('an order of a lost worker is sent again if the destination drops duplicates', async () => {
    outbox.partner.ledger.add('abandoned-broker', '{"n": 1}');
    const row = await outbox.becomes(await abandoned('broker', 'abandoned-broker'), 'sent');
    assert.deepEqual([outbox.requestsOf(row).length, row.retry_count, row.in_doubt], [1, 1, true]);
  });

  test('an order of a lost worker dies unsent if the destination does not drop duplicates', async () => {
    const row = await outbox.becomes(await abandoned('blind', 'abandoned-blind'), 'dead');
    assert.match(row.last_error ?? '', /^UNKNOWN: an earlier attempt may have had its effect/);
    assert.equal(outbox.requestsOf(row).length, 0);
    assert.equal(
      await storyOf(outbox.system.db, row.id),
      'queued > sending > failed > queued > sending > dead',
    );
  });

  test('the status of an order of a lost worker is asked before it is sent', async () => {
    outbox.partner.ledger.add('abandoned-known', '{"n": 1}');
    const known = await outbox.becomes(await abandoned('asking_later', 'abandoned-known'), 'sent');
    assert.equal(outbox.requestsOf(known).length, 0);
    const absent = await outbox.becomes(await abandoned('asking_later', 'abandoned-absent'), 'sent');
    assert.equal(outbox.requestsOf(absent).length, 1);
  });
});
