import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { Partner, PartnerAct } from '../support/partner.ts';
import { spawnPartner } from '../support/partner/spawn-partner.ts';
import { startOrderLoad } from './support/order-load.ts';
import {
  honest,
  keysFrom,
  openOutboxScene,
  openOutboxSceneAt,
  timeoutMs,
  type DestinationKeys,
  type OrderRow,
  type Outside,
} from './support/outbox-scene.ts';
import type { Replica } from './support/start-replica.ts';
import { until } from './support/until.ts';

/** What leaves everybody in doubt, by the name of the destination that meets it; whether it had its effect. */
const doubtful: Readonly<Record<string, readonly [effect: boolean, does: PartnerAct]>> = {
  reset_at_once: [false, { act: 'reset', when: 'before_effect' }],
  reset_after: [true, { act: 'reset', when: 'before_answer' }],
  reset_within: [true, { act: 'reset', when: 'mid_answer' }],
  cut_within: [true, { act: 'reset', when: 'mid_answer', by: 'fin' }],
  too_late: [true, { act: 'ok', delayMs: 3 * timeoutMs }],
  silent: [false, { act: 'hang', effect: false }],
  garbage: [true, { act: 'garbage', effect: true }],
  huge: [true, { act: 'huge_body', effect: true, bytes: 300_000 }],
  endless: [true, { act: 'endless_body', effect: true }],
  of_another: [true, { act: 'wrong_key' }],
  error_500: [false, { act: 'status', status: 500, effect: false }],
  error_502: [true, { act: 'status', status: 502, effect: true }],
  error_504: [true, { act: 'status', status: 504, effect: true, body: '<html>' }],
};

/** What says for certain that nothing has happened, and that it may later. */
const certain: Readonly<Record<string, PartnerAct>> = {
  later_in_seconds: { act: 'later', status: 429, afterS: 2 },
  later_by_date: { act: 'later', status: 429, afterS: 2, form: 'date' },
  later_503: { act: 'later', status: 503, afterS: 1 },
  running: { act: 'conflict', kind: 'running' },
};

const refusing: Readonly<Record<string, PartnerAct>> = {
  redirect: { act: 'redirect' },
  bad_request: { act: 'status', status: 422, effect: false },
};

const acts: readonly (readonly [string, PartnerAct])[] = [
  ...Object.entries(doubtful).map(([name, [, does]]) => [name, does] as const),
  ...Object.entries(certain),
  ...Object.entries(refusing),
];

const ordersEach = 4;

/** Those that only time ends; for all others there is plenty, however slow the machine is. */
const endless = new Set(['too_late', 'silent', 'endless']);
const patience = { timeout_ms: 10_000 } as const;
const longLease = { OUTBOX_STUCK_THRESHOLD_MIN: '0.5' } as const;

/** At each key's first request the partner behaves as the destination of its name says; then it is kind. */
const script = { rules: acts.map(([name, does]) => ({ keyPrefix: `${name}/`, attempt: 1, does })) };

type Met = Readonly<{ partner: Partner; byName: ReadonlyMap<string, readonly OrderRow[]> }>;

/** One destination for each kind of behaviour, so that none suffers from another's circuit or throttle. */
async function meet(
  t: TestContext,
  honoursKeys: boolean,
  promise: (outside: Outside) => DestinationKeys,
): Promise<Met> {
  const conflict = { field: 'code', processed: ['already_processed'], running: ['in_progress'] };
  const at = await openOutboxScene({
    partner: { script, honoursKeys },
    env: longLease,
    destinations: (outside) =>
      Object.fromEntries(
        acts.map(([name]) => {
          const keys = { conflict, ...(endless.has(name) ? {} : patience), ...promise(outside) };
          return [name, honest(outside.url, keys)];
        }),
      ),
  });
  t.after(() => at.close());
  await at.start();
  await at.place(
    acts.flatMap(([name]) => keysFrom(`${name}/`, ordersEach).map((key) => ({ key, destination: name }))),
  );
  await at.atRest();
  const rows = await at.check();
  return { partner: at.partner, byName: Map.groupBy(rows, ({ key }) => key.split('/')[0] ?? '') };
}

function checkEnds({ byName }: Met, name: string, status: string, error: RegExp | null): void {
  const rows = byName.get(name) ?? [];
  assert.equal(rows.length, ordersEach);
  for (const row of rows) {
    assert.equal(row.status, status, `${row.key}: ${row.lastError}`);
    if (error !== null) assert.match(row.lastError ?? '', error);
  }
}

/** What was refused is refused, and nobody follows to where a redirect points. */
function checkRefused(met: Met): void {
  for (const name of Object.keys(refusing)) {
    checkEnds(met, name, 'dead', /^BAD_REQUEST: HTTP (307|422)/);
    for (const { key } of met.byName.get(name) ?? [])
      assert.equal(met.partner.requests.filter((request) => request.key === key).length, 1);
  }
}

/** Nobody comes back before the time that they were told; a date tells whole seconds. */
function checkWaits({ partner, byName }: Met): void {
  for (const [name, leastMs] of [
    ['later_in_seconds', 2000],
    ['later_by_date', 1000],
    ['later_503', 1000],
  ] as const)
    for (const { key, retryCount } of byName.get(name) ?? []) {
      const [first, second] = partner.requests.filter((request) => request.key === key);
      assert.ok(first && second && second.atMs - first.atMs >= leastMs, `${key} came back too early`);
      assert.equal(retryCount, name === 'later_503' ? 1 : 0, 'being told to come later costs nothing');
    }
}

describe('A partner that behaves badly at first', { concurrency: 3 }, () => {
  it('has every order once in the end, where it drops doubles', async (t) => {
    const met = await meet(t, true, () => ({ idempotency: 'enforced' }));
    for (const name of [...Object.keys(doubtful), ...Object.keys(certain)])
      checkEnds(met, name, 'sent', null);
    checkRefused(met);
    checkWaits(met);
  });

  it('has none of them twice, where it does not: what is in doubt is left to a person', async (t) => {
    const met = await meet(t, false, () => ({ idempotency: 'none' }));
    for (const name of Object.keys(certain)) checkEnds(met, name, 'sent', null);
    for (const [name, [effect]] of Object.entries(doubtful)) {
      checkEnds(met, name, 'dead', /^UNKNOWN: /);
      for (const { key, inDoubt } of met.byName.get(name) ?? []) {
        assert.ok(inDoubt);
        assert.equal(met.partner.ledger.get(key)?.count ?? 0, effect ? 1 : 0);
      }
    }
    checkRefused(met);
    checkWaits(met);
  });

  it('has every order once in the end, where it does not drop doubles but can be asked', async (t) => {
    const met = await meet(t, false, ({ statusUrl }) => ({ idempotency: 'none', status_url: statusUrl }));
    for (const name of [...Object.keys(doubtful), ...Object.keys(certain)])
      checkEnds(met, name, 'sent', null);
    checkRefused(met);
    checkWaits(met);
  });
});

async function circuitOf(replica: Replica): Promise<string | undefined> {
  const answer = await replica.get('/api/v1/outbox/destinations');
  const body = answer?.body as { destinations: readonly { circuit: { state: string } }[] } | undefined;
  return body?.destinations[0]?.circuit.state;
}

describe('A partner that is away for a while', { concurrency: 2 }, () => {
  it('with a storm of errors costs no order its life: they wait behind the open circuit', async (t) => {
    const storm = { otherwise: { act: 'status', status: 500, effect: true } } as const;
    const at = await openOutboxScene({ partner: { script: storm }, env: { OUTBOX_RETRY_MAX: '4' } });
    t.after(() => at.close());
    const replica = await at.start();
    await at.place(keysFrom('storm', 300));
    await until('the circuit is open', async () => (await circuitOf(replica)) === 'open' || null);
    const before = at.partner.requestCount();
    await until('it is probed', async () => at.partner.requestCount() >= before + 8 || null);
    assert.equal(await circuitOf(replica), 'open');
    at.partner.setScript({});
    await at.atRest();
    const rows = await at.check();
    assert.ok(rows.every(({ status }) => status === 'sent'));
    assert.equal(await circuitOf(replica), 'closed');
  });

  it('because it was killed goes on with its own book, and nothing in it is doubled', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-partner-'));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const ledgerFile = join(folder, 'effects');
    const slow = { otherwise: { act: 'ok', delayMs: 20 } } as const;
    let partner = await spawnPartner({ ledgerFile, script: slow });
    t.after(() => partner.stop());
    const { url, statusUrl, port } = partner;
    const at = await openOutboxSceneAt({ url, statusUrl, effects: () => partner.effects() });
    t.after(() => at.close());
    const replica = await at.start();
    const load = startOrderLoad(at);
    t.after(() => load.stop());
    for (const before of [200, 600]) {
      await until('many are sent', async () => (await at.count('sent')) >= before || null);
      process.kill(partner.pid, 'SIGKILL');
      await until('nobody is there', async () => (await circuitOf(replica)) === 'open' || null);
      partner = await spawnPartner({ ledgerFile, port, script: slow });
    }
    await load.stop();
    await at.atRest();
    const rows = await at.check();
    assert.ok(rows.every(({ status }) => status === 'sent'));
  });
});
