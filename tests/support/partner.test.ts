import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { eventually } from './eventually.ts';
import { startPartner, type Partner, type PartnerOptions } from './partner.ts';
import { spawnPartner } from './partner/spawn-partner.ts';

async function partnerFor(t: TestContext, options: PartnerOptions = {}): Promise<Partner> {
  const partner = await startPartner(options);
  t.after(() => partner.stop());
  return partner;
}

type Said = Readonly<{ status: number; body: Readonly<Record<string, unknown>>; retryAfter: string | null }>;

async function order(url: string, key: string, body = '{"qty":1}'): Promise<Said> {
  const headers = { 'idempotency-key': key };
  const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual' });
  const text = await answer.text();
  return {
    status: answer.status,
    body: text === '' ? {} : (JSON.parse(text) as Said['body']),
    retryAfter: answer.headers.get('retry-after'),
  };
}

test('the effect of a key happens once, and a repeat is answered like the first', async (t) => {
  const partner = await partnerFor(t);
  const first = await order(partner.url, 'key-0001');
  assert.deepEqual([first.status, first.body['idempotency_key']], [200, 'key-0001']);
  assert.deepEqual(await order(partner.url, 'key-0001'), first);
  assert.equal(partner.ledger.get('key-0001')?.count, 1);
  assert.equal((await order(partner.url, 'key-0001', '{"qty":2}')).status, 422);
  assert.deepEqual(
    partner.requests.map(({ key, attempt, act }) => [key, attempt, act]),
    [1, 2, 3].map((attempt) => ['key-0001', attempt, 'ok']),
  );
});

test('a partner that does not honour keys has an effect for each request', async (t) => {
  const partner = await partnerFor(t, { honoursKeys: false });
  await order(partner.url, 'key-0001');
  await order(partner.url, 'key-0001', '{"qty":2}');
  assert.deepEqual([partner.ledger.effects(), partner.ledger.doubled()], [2, ['key-0001']]);
});

test('without a key there is no order', async (t) => {
  const partner = await partnerFor(t);
  assert.equal((await fetch(partner.url, { method: 'POST', body: '{}' })).status, 400);
  assert.equal(partner.ledger.effects(), 0);
});

test('a repeat is a conflict where the script says so', async (t) => {
  const partner = await partnerFor(t, { script: { repeat: 'processed' } });
  await order(partner.url, 'key-0001');
  const processed = await order(partner.url, 'key-0001');
  partner.setScript({ repeat: 'running' });
  const running = await order(partner.url, 'key-0001');
  assert.deepEqual(
    [processed, running].map(({ status, body }) => [status, body['code']]),
    [
      [409, 'already_processed'],
      [409, 'in_progress'],
    ],
  );
  assert.equal(partner.ledger.effects(), 1);
});

test('each act has its effect, or has not', async (t) => {
  const partner = await partnerFor(t);
  const effectsOf = async (script: Parameters<Partner['setScript']>[0]): Promise<number> => {
    partner.setScript(script);
    const before = partner.ledger.effects();
    const seen = partner.requestCount();
    const asking = order(partner.url, `key-${seen}`).catch(() => undefined);
    await eventually(() => assert.equal(partner.requestCount(), seen + 1), { everyMs: 1 });
    partner.release();
    if (typeof script === 'function') await asking;
    return partner.ledger.effects() - before;
  };
  assert.equal(await effectsOf(() => ({ act: 'empty' })), 1);
  assert.equal(await effectsOf(() => ({ act: 'wrong_key' })), 1);
  assert.equal(await effectsOf(() => ({ act: 'hold' })), 1);
  assert.equal(await effectsOf(() => ({ act: 'reset', when: 'before_effect' })), 0);
  assert.equal(await effectsOf(() => ({ act: 'reset', when: 'before_answer', by: 'fin' })), 1);
  assert.equal(await effectsOf(() => ({ act: 'reset', when: 'mid_answer' })), 1);
  assert.equal(await effectsOf({ otherwise: { act: 'hang', effect: true } }), 1);
  assert.equal(await effectsOf({ otherwise: { act: 'hang', effect: false } }), 0);
  assert.equal(await effectsOf(() => ({ act: 'status', status: 500, effect: true })), 1);
  assert.equal(await effectsOf(() => ({ act: 'status', status: 502, effect: false })), 0);
  assert.equal(await effectsOf(() => ({ act: 'later', status: 429 })), 0);
  assert.equal(await effectsOf(() => ({ act: 'conflict', kind: 'processed' })), 1);
  assert.equal(await effectsOf(() => ({ act: 'conflict', kind: 'running' })), 0);
  assert.equal(await effectsOf(() => ({ act: 'garbage', effect: true })), 1);
  assert.equal(await effectsOf(() => ({ act: 'huge_body', effect: true, bytes: 100_000 })), 1);
  assert.equal(await effectsOf(() => ({ act: 'redirect' })), 0);
  assert.equal(await effectsOf({ otherwise: { act: 'endless_body', effect: true } }), 1);
});

test('being asked to come later names its time in the form that was chosen', async (t) => {
  const partner = await partnerFor(t, {
    script: { rules: [{ attempt: 1, does: { act: 'later', status: 429, afterS: 7 } }] },
  });
  assert.equal((await order(partner.url, 'key-0001')).retryAfter, '7');
  assert.equal((await order(partner.url, 'key-0001')).status, 200);
  partner.setScript({ otherwise: { act: 'later', status: 503, afterS: 7, form: 'date' } });
  const { status, retryAfter } = await order(partner.url, 'key-0002');
  assert.equal(status, 503);
  assert.match(retryAfter ?? '', / GMT$/);
});

test('rules choose by key, attempt and chance, and chance does not depend on the order of requests', async (t) => {
  const failing = { act: 'status', status: 500, effect: false } as const;
  const script = { seed: 7, rules: [{ keyPrefix: 'bad-', chance: 0.5, attempt: { to: 2 }, does: failing }] };
  const keys = Array.from({ length: 200 }, (_, i) => `${i % 2 === 0 ? 'bad' : 'good'}-${i}`);
  const failuresOf = async (inOrder: readonly string[]): Promise<readonly string[]> => {
    const partner = await partnerFor(t, { script });
    const failed: string[] = [];
    for (const key of inOrder) if ((await order(partner.url, key)).status === 500) failed.push(key);
    return failed.toSorted();
  };
  const failed = await failuresOf(keys);
  assert.ok(failed.length > 25 && failed.length < 75, String(failed.length));
  assert.ok(failed.every((key) => key.startsWith('bad-')));
  assert.deepEqual(await failuresOf(keys.toReversed()), failed);
});

test('the status of a key is what the ledger says, and a ledger outlives its partner', async (t) => {
  const first = await startPartner();
  await order(first.url, 'key/0001');
  await first.stop();
  const second = await partnerFor(t, { port: first.port, ledger: first.ledger });
  const statusOf = (key: string) => fetch(second.statusUrl.replace('{key}', encodeURIComponent(key)));
  const done = await statusOf('key/0001');
  assert.deepEqual([done.status, ((await done.json()) as Said['body'])['status']], [200, 'done']);
  assert.equal((await statusOf('key-0002')).status, 404);
  assert.equal(second.questionCount(), 2);
  await order(second.url, 'key/0001');
  assert.equal(second.ledger.effects(), 1);
});

test('in a process of its own it is told its script, tells its counts, and remembers after a kill', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'partner-'));
  t.after(() => rm(folder, { recursive: true }));
  const ledgerFile = join(folder, 'effects');
  const first = await spawnPartner({ ledgerFile, keepsRequests: true });
  await order(first.url, 'key-0001');
  await first.setScript({ otherwise: { act: 'status', status: 500, effect: true } });
  assert.equal((await order(first.url, 'key-0002')).status, 500);
  assert.deepEqual(
    (await first.requests()).map(({ key }) => key),
    ['key-0001', 'key-0002'],
  );
  process.kill(first.pid, 'SIGKILL');
  await first.stop();
  const second = await spawnPartner({ ledgerFile });
  await order(second.url, 'key-0002');
  assert.deepEqual(await second.counts(), { requests: 1, questions: 0, keys: 2, effects: 2, doubled: 0 });
  assert.deepEqual(
    (await second.effects()).map(({ key }) => key),
    ['key-0001', 'key-0002'],
  );
  await second.stop();
  await assert.rejects(fetch(second.url));
});
