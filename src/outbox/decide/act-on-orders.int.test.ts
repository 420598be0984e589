import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertError, sortedStatuses } from '../../../tests/support/api-client.ts';
import { callerCalled, dead, deadInDoubt, failed, sent } from '../../../tests/support/outbox-orders.ts';
import { anOrder, newKey, root, startOutboxApi, type OutboxApi } from '../../../tests/support/outbox-api.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Settlement } from '../domain/order.ts';
import { supersedeOrder } from './supersede-order.ts';
import { testAct } from '../../../tests/support/acts.ts';

let outbox: OutboxApi;
before(async () => void (outbox = await startOutboxApi()));
after(() => outbox.drop());

type Told = Readonly<{
  id: number;
  status: string;
  resolution: string | null;
  last_error: string | null;
  needs_attention: boolean;
  superseded_by_id: number | null;
  supersedes_id: number | null;
  ordering_key: string | null;
  ordering_seq: number | null;
  destination: string;
  attempts: readonly unknown[];
  audit: readonly Readonly<{ status_to: string; actor: string; reason: string | null }>[];
}>;

const act = (id: bigint, action: string, body?: unknown, headers = {}) =>
  outbox.api.post<Told>(`${root}/orders/${id}/${action}`, body, headers);
const told = async (id: bigint | number) => (await outbox.api.get<Told>(`${root}/orders/${id}`)).body;

/** Posts a correction with its key in the header. */
const supersede = (id: bigint, more: object = {}, idempotency_key = newKey()) =>
  outbox.api.post<Readonly<{ id: number; supersedes_id: number }>>(
    `${root}/orders/${id}/supersede`,
    { idempotency_key, request: { sku: 'B-2' }, ...more },
    { 'idempotency-key': idempotency_key, 'x-actor': 'bob' },
  );

const failedInDoubt: Settlement = {
  to: 'failed',
  error: 'NETWORK_TIMEOUT: no answer',
  inDoubt: true,
  delayMs: 0,
  costsRetry: true,
};

async function deadOrder(settlement = dead, more = {}): Promise<bigint> {
  const id = await outbox.placed(more);
  await outbox.attempt(id, settlement);
  return id;
}

describe('cancelling', () => {
  test('a waiting order is cancelled, and the answer shows it', async () => {
    const id = await outbox.placed();
    const answer = await act(id, 'cancel', { reason: 'the customer withdrew' }, { 'x-actor': 'alice' });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual([answer.body.status, answer.body.resolution], ['dead', 'cancelled']);
    assert.equal(answer.body.needs_attention, false);
    assert.match(answer.body.last_error ?? '', /^CANCELLED: the customer withdrew/);
    assert.equal(answer.body.audit.at(-1)?.actor, 'alice');
    assert.deepEqual(answer.body, await told(id));
  });

  test('it needs no body, and a failed order can be cancelled too', async () => {
    const id = await outbox.placed();
    await outbox.attempt(id, failed);
    assert.equal((await act(id, 'cancel')).status, 200);
  });

  test('cancelling a dead or cancelled order is a conflict that names its status', async () => {
    const id = await deadOrder();
    const { message } = assertError(await act(id, 'cancel'), 409, 'SYS_OUTBOX_CONFLICT');
    assert.match(message, /cannot be cancelled: status=dead, resolution=none/);
    const other = await outbox.placed();
    await act(other, 'cancel');
    const again = assertError(await act(other, 'cancel'), 409, 'SYS_OUTBOX_CONFLICT');
    assert.match(again.message, /status=dead, resolution=cancelled/);
  });

  test('a sent order stays sent', async () => {
    const id = await outbox.placed();
    await outbox.attempt(id, sent);
    assertError(await act(id, 'cancel'), 409, 'SYS_OUTBOX_ALREADY_SENT');
    assert.equal((await told(id)).status, 'sent');
  });

  test('an order in doubt is cancelled only with effect_checked', async () => {
    const id = await outbox.placed();
    await outbox.attempt(id, failedInDoubt);
    for (const body of [undefined, {}, { effect_checked: false }, { reason: 'x' }]) {
      const { message, details } = assertError(
        await act(id, 'cancel', body),
        409,
        'SYS_OUTBOX_EFFECT_UNCHECKED',
      );
      assert.match(message, /"effect_checked": true/);
      assert.equal(details[0]?.field, 'effect_checked');
    }
    assert.equal((await told(id)).status, 'failed');
    assert.equal((await act(id, 'cancel', { effect_checked: true })).status, 200);
  });
});

describe('skipping', () => {
  test('skipping a dead order unblocks the orders behind it', async () => {
    const key = newKey();
    const first = await outbox.placed({ ordering_key: key });
    const second = await outbox.placed({ ordering_key: key });
    await outbox.attempt(first, dead);
    const answer = await act(first, 'skip', { reason: 'placed by phone' });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.body.resolution, 'skipped');
    await outbox.attempt(second, sent);
  });

  test('only dead orders without a resolution can be skipped', async () => {
    const id = await outbox.placed();
    const waiting = assertError(await act(id, 'skip'), 409, 'SYS_OUTBOX_CONFLICT');
    assert.match(waiting.message, /cannot be skipped: status=queued, resolution=none/);
    const unsure = await deadOrder(deadInDoubt);
    assertError(await act(unsure, 'skip'), 409, 'SYS_OUTBOX_EFFECT_UNCHECKED');
    assert.equal((await act(unsure, 'skip', { effect_checked: true })).status, 200);
    assertError(await act(unsure, 'skip', { effect_checked: true }), 409, 'SYS_OUTBOX_CONFLICT');
  });

  test('an archived order is a conflict, an unknown one is not found', async () => {
    const id = await deadOrder();
    await act(id, 'skip');
    await outbox.archive(id);
    for (const action of ['skip', 'cancel']) {
      const { message } = assertError(await act(id, action), 409, 'SYS_OUTBOX_CONFLICT');
      assert.match(message, /it is archived, status=dead, resolution=skipped/);
      assertError(await act(9_007_199_254_740_993n, action), 404, 'SYS_OUTBOX_NOT_FOUND');
    }
    assertError(await supersede(id), 409, 'SYS_OUTBOX_CONFLICT');
    assertError(await supersede(9_007_199_254_740_993n), 404, 'SYS_OUTBOX_NOT_FOUND');
  });

  test('an order that another transaction has locked is busy', async () => {
    const id = await deadOrder();
    await outbox.db.transaction(async (tx) => {
      await tx.query(sql`SELECT 1 FROM outbox.outbox_orders WHERE id = ${id} FOR UPDATE`);
      for (const answer of [await act(id, 'skip'), await supersede(id)]) {
        assertError(answer, 409, 'SYS_OUTBOX_BUSY');
        assert.equal(answer.headers.get('retry-after'), '1');
      }
    });
    assert.equal((await told(id)).resolution, null);
  });
});

describe('superseding', () => {
  test('the corrected order takes the place of the old one', async () => {
    const id = await deadOrder(dead, { ordering_key: newKey() });
    const answer = await supersede(id, { reason: 'the sku was wrong', trace_id: 't-1' });
    assert.equal(answer.status, 201, answer.text);
    assert.equal(answer.body.supersedes_id, Number(id));
    const old = await told(id);
    const corrected = await told(answer.body.id);
    assert.deepEqual([old.resolution, old.superseded_by_id], ['superseded', answer.body.id]);
    assert.deepEqual(
      [corrected.status, corrected.supersedes_id, corrected.destination],
      ['queued', Number(id), old.destination],
    );
    assert.deepEqual([corrected.ordering_key, corrected.ordering_seq], [old.ordering_key, old.ordering_seq]);
    assert.equal(corrected.audit[0]?.actor, 'bob');
  });

  test('a repeated correction gets the first answer, also in parallel', async () => {
    const id = await deadOrder();
    const key = newKey();
    const first = await supersede(id, {}, key);
    assert.equal(first.headers.get('idempotent-replayed'), null);
    const again = await Promise.all(Array.from({ length: 5 }, () => supersede(id, {}, key)));
    for (const answer of again) {
      assert.deepEqual([answer.status, answer.text], [200, first.text]);
      assert.equal(answer.headers.get('idempotent-replayed'), 'true');
    }
    await outbox.attempt(BigInt(first.body.id), sent);
    assert.equal((await supersede(id, {}, key)).text, first.text);

    const other = await deadOrder();
    const atOnce = await Promise.all(Array.from({ length: 5 }, () => supersede(other, {}, `${key}-b`)));
    assert.deepEqual(sortedStatuses(atOnce), [200, 200, 200, 200, 201]);
    assert.equal(new Set(atOnce.map(({ text }) => text)).size, 1);
  });

  test('a second correction with another key or request is refused', async () => {
    const id = await deadOrder();
    const key = newKey();
    await supersede(id, {}, key);
    const { message } = assertError(await supersede(id), 409, 'SYS_OUTBOX_CONFLICT');
    assert.match(message, /cannot be superseded: status=dead, resolution=superseded/);
    assertError(
      await supersede(id, { request: { sku: 'C-3' } }, key),
      422,
      'SYS_OUTBOX_IDEMPOTENCY_MISMATCH',
    );
  });

  test('a key of another order is refused, even for the same request', async () => {
    const key = newKey();
    await outbox.placed({ idempotency_key: key, request: { sku: 'B-2' } });
    const id = await deadOrder();
    assertError(await supersede(id, {}, key), 409, 'SYS_OUTBOX_CONFLICT');
    assertError(await supersede(id, { request: { sku: 'D' } }, key), 422, 'SYS_OUTBOX_IDEMPOTENCY_MISMATCH');
    const old = await told(id);
    assert.deepEqual([old.resolution, old.superseded_by_id], [null, null]);
  });

  test('it is checked like a new order, and a refused one changes nothing', async () => {
    const id = await deadOrder(dead, { destination: 'broker', request: anOrder });
    const flawed = await supersede(id, { request: { ...anOrder, qty: -1 } });
    const { details } = assertError(flawed, 422, 'SYS_OUTBOX_SCHEMA_VIOLATION');
    assert.equal(details[0]?.field, 'request.qty');
    const path = `${root}/orders/${id}/supersede`;
    const body = { idempotency_key: newKey(), request: anOrder };
    assertError(await outbox.api.post(path, body), 400, 'SYS_OUTBOX_VALIDATION_ERROR');
    assertError(await outbox.api.post(path, body, { 'idempotency-key': newKey() }), 400);
    assert.equal((await told(id)).resolution, null);
    assert.equal((await supersede(id, { request: anOrder })).status, 201);
  });

  test('a repeated correction gets the first answer even after the schema became stricter', async () => {
    const id = await deadOrder();
    const key = newKey();
    const first = await supersede(id, {}, key);
    const flaw = { field: 'request.sku', reason: 'enum', message: 'must be one of: C-3' };
    const isStrict = { name: 'warehouse', isInternal: false, flawsOf: () => [flaw] };
    const strict = { ...outbox.supersedeDeps, destinations: new Map([['warehouse', isStrict]]) };
    const action = {
      id,
      actor: 'bob',
      reason: null,
      effectChecked: false,
      act: testAct('outbox:orders:skip'),
      caller: callerCalled('bob'),
    };
    const corrected = { idempotencyKey: key, request: { sku: 'B-2' }, traceId: null, traceparent: null };
    const again = await supersedeOrder(strict, action, corrected);
    assert.deepEqual([again.outcome, again.id], ['replayed', BigInt(first.body.id)]);
    const refused = { code: 'SYS_OUTBOX_SCHEMA_VIOLATION' };
    await assert.rejects(supersedeOrder(strict, action, { ...corrected, idempotencyKey: newKey() }), refused);
    // The key and request of another order are not a repeated correction.
    await assert.rejects(supersedeOrder(strict, { ...action, id: await deadOrder() }, corrected), refused);
  });

  test('an order that is in doubt, sent or not dead cannot be superseded', async () => {
    const unsure = await deadOrder(deadInDoubt);
    assertError(await supersede(unsure), 409, 'SYS_OUTBOX_EFFECT_UNCHECKED');
    assert.equal((await supersede(unsure, { effect_checked: true })).status, 201);
    const done = await outbox.placed();
    await outbox.attempt(done, sent);
    assertError(await supersede(done), 409, 'SYS_OUTBOX_ALREADY_SENT');
    assertError(await supersede(await outbox.placed()), 409, 'SYS_OUTBOX_CONFLICT');
  });

  test('an order of an internal or unknown destination cannot be superseded, but can be skipped', async () => {
    for (const destination of ['_saga_events', 'gone']) {
      const id = await deadOrder();
      await outbox.db.query(
        sql`UPDATE outbox.outbox_orders SET destination = ${destination} WHERE id = ${id}`,
      );
      const { message } = assertError(await supersede(id), 409, 'SYS_OUTBOX_CONFLICT');
      assert.match(message, new RegExp(`destination=${destination}`));
      assert.equal((await act(id, 'skip')).status, 200);
    }
  });
});
