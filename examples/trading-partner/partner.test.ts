import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { startPartner, type Partner, type PartnerOptions } from './partner.ts';

type Answer = Readonly<{ status: number; headers: Headers; body: Readonly<Record<string, unknown>> }>;

const usual = JSON.stringify({ symbol: 'USDJPY', intent: 'BUY', qty: 1000 });

async function start(context: TestContext, options: PartnerOptions = {}): Promise<Partner> {
  const partner = await startPartner({ limit: { ordersPerSecond: 1000, retryAfterSeconds: 1 }, ...options });
  context.after(() => partner.close());
  return partner;
}

async function post(
  partner: Partner,
  key: string,
  { body = usual, timeoutMs = 5000 }: Readonly<{ body?: string; timeoutMs?: number }> = {},
): Promise<Answer> {
  const answer = await fetch(partner.url, {
    method: 'POST',
    headers: { 'idempotency-key': key },
    body,
    signal: AbortSignal.timeout(timeoutMs),
  });
  const { status, headers } = answer;
  return { status, headers, body: (await answer.json()) as Answer['body'] };
}

/** Sends so many others first, so that the next one meets the mood that a test is about. */
async function sendOthers(partner: Partner, count: number): Promise<void> {
  for (let i = 1; i <= count; i += 1) await post(partner, `other-key-${i}`);
}

async function statusOf(partner: Partner, key: string): Promise<number> {
  return (await fetch(`${partner.url}/${key}`)).status;
}

test("an order is done and answered with its key and a number of the broker's own", async (t) => {
  const partner = await start(t);
  const { status, body } = await post(partner, 'first-key');
  assert.equal(status, 200);
  assert.equal(body['broker_order_id'], 'brk-000001');
  assert.equal(body['idempotency_key'], 'first-key');
  assert.equal(await statusOf(partner, 'first-key'), 200);
  assert.equal(await statusOf(partner, 'other-key'), 404);
});

test('a 503 means that nothing has happened', async (t) => {
  const partner = await start(t);
  await sendOthers(partner, 4);
  assert.equal((await post(partner, 'fifth-key')).status, 503);
  assert.equal(await statusOf(partner, 'fifth-key'), 404);
  assert.equal((await post(partner, 'fifth-key')).status, 200);
});

test('after a 500 the order is done, and asking again is told so with 409', async (t) => {
  const partner = await start(t);
  await sendOthers(partner, 11);
  assert.equal((await post(partner, 'some-key')).status, 500);
  assert.equal(await statusOf(partner, 'some-key'), 200);
  const again = await post(partner, 'some-key');
  assert.equal(again.status, 409);
  assert.equal(again.body['broker_order_id'], partner.book.find('some-key')?.brokerOrderId);
  assert.equal(partner.book.find('some-key')?.timesAsked, 2);
});

test('an order without an answer is done, and asking again gets the answer', async (t) => {
  const partner = await start(t);
  await sendOthers(partner, 17);
  await assert.rejects(post(partner, 'some-key', { timeoutMs: 100 }), { name: 'TimeoutError' });
  const done = partner.book.find('some-key');
  assert.ok(done);
  const again = await post(partner, 'some-key');
  assert.equal(again.status, 200);
  assert.equal(again.body['broker_order_id'], done.brokerOrderId);
});

test('what it does not trade, or cannot read, is refused for good', async (t) => {
  const partner = await start(t);
  for (const body of ['{"symbol":"USDJPX"}', '{"symbol":', 'null', '']) {
    assert.equal((await post(partner, 'some-key', { body })).status, 400);
  }
  assert.equal((await post(partner, '')).status, 400);
  assert.deepEqual(partner.book.effects(), []);
});

test('a key that comes with another order is refused', async (t) => {
  const partner = await start(t);
  await post(partner, 'some-key');
  assert.equal((await post(partner, 'some-key', { body: usual.replace('BUY', 'SELL') })).status, 422);
  assert.equal(partner.book.effects().length, 1);
});

test('who sends too fast is told when to come again, and nothing has happened', async (t) => {
  const partner = await start(t, { limit: { ordersPerSecond: 1, retryAfterSeconds: 2 } });
  const answers = [await post(partner, 'first-key'), await post(partner, 'other-key')];
  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers.get('retry-after')]),
    [
      [200, null],
      [429, '2'],
    ],
  );
  assert.equal(partner.book.find('other-key'), undefined);
});

test('while it is away connections are refused, and it comes back at the same address', async (t) => {
  const partner = await start(t);
  await post(partner, 'first-key');
  await partner.goAway();
  await assert.rejects(post(partner, 'other-key'), ({ cause }: Error) => {
    assert.equal((cause as NodeJS.ErrnoException).code, 'ECONNREFUSED');
    return true;
  });
  await partner.comeBack();
  assert.equal((await post(partner, 'other-key')).status, 200);
  assert.equal(partner.book.effects().length, 2);
});

test(
  'who waits for an answer when it goes away sees the connection break',
  { timeout: 10_000 },
  async (t) => {
    const partner = await start(t);
    await sendOthers(partner, 17);
    const waiting = assert.rejects(post(partner, 'some-key'), { message: 'fetch failed' });
    while (partner.book.find('some-key') === undefined) await setImmediate();
    await partner.goAway();
    await waiting;
  },
);

test('a partner that was started again still does nothing twice', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-partner-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const bookFile = join(folder, 'book.jsonl');
  const first = await start(t, { bookFile });
  const { body } = await post(first, 'some-key');
  await first.close();
  const second = await start(t, { bookFile });
  assert.deepEqual((await post(second, 'some-key')).body, body);
  assert.equal(second.book.effects().length, 1);
});

test('its book is for people to read', async (t) => {
  const partner = await start(t);
  await post(partner, 'some-key');
  await post(partner, 'some-key');
  const text = await (await fetch(partner.url)).text();
  assert.match(text, /^Orders done in the last two hours: 1, each of them once\. Asked for again: 1\.$/m);
  assert.match(text, /brk-000001 {2}some-key +BUY 1000 USDJPY +accepted, asked for 2 times/);
});
