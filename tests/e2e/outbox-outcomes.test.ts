import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { storyOf } from '../support/outbox-orders.ts';
import { startOutboxSystem, type OutboxSystem } from '../support/outbox-system.ts';
import type { PartnerAct } from '../support/partner.ts';

/**
 * The outcome of an order for each way in which the partner can answer, or fail to. Every case has its own destination,
 * so that they do not open a circuit together; the limit is two retries.
 */
type Case = Readonly<{
  name: string;
  /** What the partner does with the first request, with the second, and so on. */
  does: readonly PartnerAct[];
  ends: Ends;
  /** Of the destination, which drops doubles and takes every 409 for processed unless it says otherwise. */
  to: Readonly<Record<string, unknown>>;
}>;

type Ends = Readonly<{
  status: 'sent' | 'dead';
  requests: number;
  isInDoubt: boolean;
  error?: RegExp;
}>;

function given(name: string, does: readonly PartnerAct[], ends: Ends, to: Case['to'] = {}): Case {
  return { name, does, ends, to };
}

const ok: PartnerAct = { act: 'ok' };
const empty: PartnerAct = { act: 'empty' };
const says = (status: number, body?: string): PartnerAct => ({
  act: 'status',
  status,
  effect: false,
  ...(body === undefined ? {} : { body }),
});
const saysAfterEffect = (status: number, body?: string): PartnerAct => ({
  ...says(status, body),
  act: 'status',
  status,
  effect: true,
});
const page = saysAfterEffect(200, '<p>thanks</p>');
const redirect: PartnerAct = { act: 'redirect' };
const hang: PartnerAct = { act: 'hang', effect: false };
const hangAfterEffect: PartnerAct = { act: 'hang', effect: true };
const late: PartnerAct = { act: 'ok', delayMs: 1400 };
const endless: PartnerAct = { act: 'endless_body', effect: true };
const huge: PartnerAct = { act: 'huge_body', effect: true, bytes: 200_000 };
const wrongKey: PartnerAct = { act: 'wrong_key' };
const garbage: PartnerAct = { act: 'garbage', effect: true };
const hangUp: PartnerAct = { act: 'reset', when: 'before_effect' };
const running: PartnerAct = { act: 'conflict', kind: 'running' };
const processed: PartnerAct = { act: 'conflict', kind: 'processed' };

const sentAtOnce: Ends = { status: 'sent', requests: 1, isInDoubt: false };
const sentAgain: Ends = { ...sentAtOnce, requests: 2 };
const sentInDoubt: Ends = { ...sentAgain, isInDoubt: true };
const isKnown = { error: /^CONFLICT_PROCESSED: / };
const deadAtOnce = (error: RegExp): Ends => ({ ...sentAtOnce, status: 'dead', error });
const deadOfRetries = (error: RegExp): Ends => ({ ...deadAtOnce(error), requests: 3 });
const deadInDoubt = (error: RegExp, requests = 1): Ends => ({
  ...deadAtOnce(error),
  requests,
  isInDoubt: true,
});

const any = { response: 'any' };
/** Long enough for a busy machine to answer, short enough to wait for. */
const hasty = { timeout_ms: 1200 };
const none = { idempotency: 'none' };
const byField = { conflict: { field: 'code', processed: ['already_processed'], running: ['in_progress'] } };
const byHeader = {
  conflict: { header: 'X-Conflict', processed: 'already_processed', running: 'in_progress' },
};
const otherWords = { conflict: { field: 'code', processed: ['done'], running: ['busy'] } };
const noWord = { conflict: undefined };

const certain: readonly Case[] = [
  given('a 2xx like the one of the seed', [ok], sentAtOnce),
  given('a 2xx without a body', [empty], sentAtOnce),
  given('a 202', [saysAfterEffect(202, '{"status":"accepted"}')], sentAtOnce),
  given('a 2xx of any content with `response: any`', [page], sentAtOnce, any),
  given('a huge 2xx with `response: any`', [huge], sentAtOnce, any),
  given('a 2xx that never ends with `response: any`', [endless], sentAtOnce, { ...any, ...hasty }),
  ...[300, 304, 400, 404, 405, 410, 413, 418, 422].map((status) =>
    given(`a ${status}`, [says(status)], deadAtOnce(new RegExp(`^BAD_REQUEST: HTTP ${status}`))),
  ),
  given('a redirect, which is not followed', [redirect], deadAtOnce(/^BAD_REQUEST: HTTP 307/)),
  given('a 401', [says(401)], deadAtOnce(/^UNAUTHORIZED: HTTP 401/)),
  given('a 403', [says(403)], deadAtOnce(/^UNAUTHORIZED: HTTP 403/)),
  given('a 503', [says(503), ok], sentAgain),
  given('a 503, without deduplication', [says(503), ok], sentAgain, none),
  given('a 503 each time', [says(503)], deadOfRetries(/^BROKER_5XX: HTTP 503/)),
];

const doubtful: readonly Case[] = [
  ...[500, 501, 502, 504, 520].flatMap((status) => [
    given(`a ${status} after the effect`, [saysAfterEffect(status), ok], sentInDoubt),
    given(
      `a ${status}, without deduplication`,
      [says(status), ok],
      deadInDoubt(/^UNKNOWN: BROKER_5XX: HTTP 5/),
      none,
    ),
  ]),
  given('a 500 each time', [saysAfterEffect(500)], deadInDoubt(/^UNKNOWN: BROKER_5XX: HTTP 500/, 3)),
  given('a 500, and then a 400', [says(500), says(400)], deadInDoubt(/^UNKNOWN: BAD_REQUEST: HTTP 400/, 2)),
  given('a 408 after the effect', [saysAfterEffect(408), ok], sentInDoubt),
  given('a 408, without deduplication', [says(408), ok], deadInDoubt(/^UNKNOWN: NETWORK_TIMEOUT/), none),
  given('a timeout before the effect', [hang, ok], sentInDoubt, hasty),
  given('a timeout after the effect', [hangAfterEffect, ok], sentInDoubt, hasty),
  given('a timeout each time', [hangAfterEffect], deadInDoubt(/^UNKNOWN: NETWORK_TIMEOUT/, 3), hasty),
  given('a timeout, without deduplication', [hangAfterEffect, ok], deadInDoubt(/^UNKNOWN: NETWORK/), {
    ...none,
    ...hasty,
  }),
  given('an answer after the timeout', [late, ok], sentInDoubt, hasty),
  ...(['before_effect', 'before_answer', 'mid_answer'] as const).flatMap((when) =>
    (['rst', 'fin'] as const).flatMap((by) => {
      const reset: PartnerAct = { act: 'reset', when, by };
      const name = `a connection that ends ${when.replace('_', ' ')} by ${by.toUpperCase()}`;
      return [
        given(name, [reset, ok], sentInDoubt),
        given(`${name}, without deduplication`, [reset, ok], deadInDoubt(/^UNKNOWN: NETWORK/), none),
      ];
    }),
  ),
  given('a 2xx that is not JSON', [page, ok], sentInDoubt),
  given(
    'a 2xx that is not JSON, without deduplication',
    [page],
    deadInDoubt(/^UNKNOWN: HTTP 200, not/),
    none,
  ),
  given('a 2xx for another key', [wrongKey, ok], sentInDoubt),
  given('a 2xx that is too large', [huge, ok], sentInDoubt),
  given('a 2xx that never ends', [endless, ok], sentInDoubt, hasty),
  given('bytes that are not HTTP', [garbage, ok], sentInDoubt),
];

const conflicts: readonly Case[] = [
  given('a 409 that always means processed', [processed], { ...sentAtOnce, ...isKnown }),
  given('a 409 that always means running', [running, ok], sentAgain, { conflict: 'running' }),
  given(
    'a 409 that means running each time',
    [running],
    deadInDoubt(/^UNKNOWN: CONFLICT_RUNNING: HTTP 409/, 3),
    byField,
  ),
  given('a 409 whose field says processed', [processed], { ...sentAtOnce, ...isKnown }, byField),
  given('a 409 whose field says running', [running, ok], sentAgain, byField),
  given('a 409 whose header says processed', [processed], { ...sentAtOnce, ...isKnown }, byHeader),
  given('a 409 whose header says running', [running, processed], { ...sentAgain, ...isKnown }, byHeader),
  given('a 409 that no profile explains', [processed, ok], sentInDoubt, noWord),
  given('a 409 whose field says something else', [processed, ok], sentInDoubt, otherWords),
  given('an unexplained 409, without deduplication', [running, ok], deadInDoubt(/^UNKNOWN: HTTP 409/), {
    ...otherWords,
    ...none,
  }),
  given('a 409 that means running, without deduplication', [running, ok], sentAgain, {
    ...byField,
    ...none,
  }),
  given('a timeout, and then a 409', [hangAfterEffect, processed], { ...sentInDoubt, ...isKnown }, hasty),
];

const cases = [...doubtful, ...certain, ...conflicts];
const destinationOf = (one: Case): string => `case_${cases.indexOf(one)}`;

describe('An order has the right outcome after', { concurrency: 16 }, () => {
  let outbox: OutboxSystem;
  before(async () => {
    outbox = await startOutboxSystem({
      destinations: () => Object.fromEntries(cases.map((one) => [destinationOf(one), one.to])),
      // So many destinations would poll all the time.
      env: { OUTBOX_RETRY_MAX: '2', OUTBOX_IDLE_SLEEP_MS: '150' },
    });
  });
  after(() => outbox.conclude());

  for (const one of cases)
    test(one.name, async () => {
      const { status, requests, isInDoubt, error } = one.ends;
      const id = await outbox.order({ destination: destinationOf(one), does: one.does });
      const row = await outbox.becomes(id, status);
      const retries = requests - 1;
      const facts = [outbox.requestsOf(row).length, row.retry_count, row.in_doubt];
      assert.deepEqual(facts, [requests, retries, isInDoubt], row.last_error ?? '');
      assert.match(row.last_error ?? '', error ?? /^$/);
      const again = 'failed > queued > sending > '.repeat(retries);
      assert.equal(await storyOf(outbox.system.db, id), `queued > sending > ${again}${status}`);
    });
});

test('Each delay doubles the previous one with a tenth of jitter, up to the maximum', async (t) => {
  const outbox = await startOutboxSystem({
    env: { OUTBOX_BACKOFF_INITIAL_MS: '40', OUTBOX_BACKOFF_MAX_MS: '160' },
  });
  t.after(() => outbox.conclude());
  const { db } = outbox.system;
  // The delays as stored, to the microsecond, so the test need not poll at the right moment.
  await db.query(sql`CREATE TABLE waits (id BIGINT, ms FLOAT8)`);
  await db.query(sql`
    CREATE FUNCTION note_wait() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO waits VALUES (NEW.id, date_part('epoch', NEW.next_attempt_at - NEW.updated_at) * 1000);
      RETURN NULL;
    END $$`);
  await db.query(sql`
    CREATE TRIGGER note_wait AFTER UPDATE ON outbox.outbox_orders
    FOR EACH ROW WHEN (NEW.status = 'failed') EXECUTE FUNCTION note_wait()`);

  const id = await outbox.order({ does: [says(503), says(500), hangUp, says(408), says(502), ok] });
  const row = await outbox.becomes(id, 'sent');
  assert.deepEqual([outbox.requestsOf(row).length, row.retry_count], [6, 5]);
  const waits = await db.query<{ ms: number }>(sql`SELECT ms FROM waits WHERE id = ${id}`);
  const expected = [40, 80, 160, 160, 160];
  assert.equal(waits.length, expected.length);
  const gaps = await db.query<{ ms: number }>(sql`
    SELECT ms FROM (
      SELECT id, status_from, date_part('epoch', at - lag(at) OVER (ORDER BY id)) * 1000 AS ms
      FROM outbox.outbox_audit WHERE outbox_id = ${id}) steps
    WHERE status_from = 'failed' ORDER BY id`);
  for (const [i, wanted] of expected.entries()) {
    const ms = waits[i]?.ms ?? 0;
    assert.ok(ms > wanted * 0.9 - 1 && ms < wanted * 1.1 + 1, `wait ${i + 1} is ${ms} ms`);
    assert.ok((gaps[i]?.ms ?? 0) >= ms - 1, `it was claimed after ${gaps[i]?.ms} of ${ms} ms`);
  }
});
