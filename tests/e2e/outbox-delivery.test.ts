import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { storyOf } from '../support/outbox-orders.ts';
import { startOutboxSystem, type OutboxSystem } from '../support/outbox-system.ts';

describe('An order', () => {
  let outbox: OutboxSystem;
  before(async () => void (outbox = await startOutboxSystem()));
  after(() => outbox.drop());

  test('that was accepted reaches the partner once and is sent', async () => {
    const id = await outbox.order();
    const row = await outbox.becomes(id, 'sent');
    assert.equal(outbox.partner.ledger.get(row.idempotency_key)?.count, 1);
    assert.equal(await storyOf(outbox.system.db, id), 'queued > sending > sent');
  });
});
