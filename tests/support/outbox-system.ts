import assert from 'node:assert/strict';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from './eventually.ts';
import {
  startPartner,
  type EffectLedger,
  type Partner,
  type PartnerAct,
  type SeenRequest,
} from './partner.ts';
import { startTestSystem, type TestSystem, type TestSystemOptions } from './start-system.ts';

/** The whole system with one real partner for all destinations. */
export type OutboxSystem = Readonly<{
  system: TestSystem;
  partner: Partner;
  /** Posts an order and returns its id. */
  order(more?: OrderOptions): Promise<bigint>;
  /** What the partner does with orders that have no script. */
  otherwise(act: (key: string) => PartnerAct): void;
  /** Resolves with the row when the order has this status. */
  becomes(id: bigint, status: string, withinMs?: number): Promise<StoredOrder>;
  /** The same for several orders, in the given order. */
  become(ids: readonly bigint[], status: string, withinMs?: number): Promise<readonly StoredOrder[]>;
  requestsOf(order: Pick<StoredOrder, 'idempotency_key'>): readonly SeenRequest[];
  drop(): Promise<void>;
  /** Checks that each order has had its effect at most once, as its status says, and drops the system. */
  conclude(effects?: EffectLedger): Promise<void>;
}>;

/** Fields of the body, and what the partner does with its requests in turn; the last act repeats. */
export type OrderOptions = Readonly<{ does?: readonly PartnerAct[]; [field: string]: unknown }>;

export type StoredOrder = Readonly<{
  id: bigint;
  idempotency_key: string;
  destination: string;
  ordering_key: string | null;
  status: string;
  resolution: string | null;
  retry_count: number;
  last_error: string | null;
  in_doubt: boolean;
  first_sent_at: Date | null;
  response: Readonly<{ status: number | null; broker_order_id: string | null }> | null;
}>;

type Settings = Readonly<Record<string, unknown>>;

export type OutboxSystemOptions = TestSystemOptions &
  Readonly<{
    /** A running partner, for a system that was restarted. */
    partner?: Partner;
    /** Settings of the destination `broker`, besides type and url. */
    broker?: Settings;
    /** Further destinations; HTTP destinations default to the settings of `broker`. */
    destinations?: (partner: Partner) => Readonly<Record<string, Settings>>;
  }>;

/** Delays of milliseconds, so that a test can wait for all attempts of an order. */
export const fastEnv = {
  OUTBOX_BACKOFF_INITIAL_MS: '20',
  OUTBOX_BACKOFF_MAX_MS: '80',
  OUTBOX_IDLE_SLEEP_MS: '20',
} as const;

let made = 0;

export async function startOutboxSystem(options: OutboxSystemOptions = {}): Promise<OutboxSystem> {
  const partner = options.partner ?? (await startPartner());
  const plans = new Map<string, readonly PartnerAct[]>();
  let otherwise = (_key: string): PartnerAct => ({ act: 'ok' });
  partner.setScript(({ key, attempt }) => plans.get(key)?.slice(0, attempt).at(-1) ?? otherwise(key));
  const system = await startTestSystem({
    ...options,
    env: {
      ...fastEnv,
      OUTBOX_DESTINATIONS: JSON.stringify(destinationsOf(partner, options)),
      ...options.env,
    },
  });
  const become: OutboxSystem['become'] = (ids, status, withinMs = 60_000) =>
    eventually(
      async () => {
        const rows = await storedOrders(system.db, ids);
        for (const row of rows) assert.equal(row.status, status, nameOf(row));
        return rows;
      },
      { withinMs },
    );
  const drop = async (): Promise<void> => {
    await system.drop();
    if (options.partner === undefined) await partner.stop();
  };
  return {
    system,
    partner,
    async order({ does, ...more } = {}) {
      made += 1;
      const key = `e2e-order-${made}`;
      const body = { destination: 'broker', idempotency_key: key, request: { n: made }, ...more };
      if (does !== undefined) plans.set(body.idempotency_key, does);
      const answer = await system.api.post<{ id: number }>('/api/v1/outbox/orders', body, {
        'idempotency-key': body.idempotency_key,
      });
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
      return BigInt(answer.body.id);
    },
    otherwise: (act) => void (otherwise = act),
    becomes: async (id, status, withinMs) => (await become([id], status, withinMs))[0] ?? assert.fail(),
    become,
    requestsOf: ({ idempotency_key }) => partner.requests.filter(({ key }) => key === idempotency_key),
    drop,
    async conclude(effects = partner.ledger) {
      try {
        await assertOneEffectEach(system.db, effects);
      } finally {
        await drop();
      }
    },
  };
}

function destinationsOf(partner: Partner, { broker, destinations }: OutboxSystemOptions): Settings {
  const usual = {
    type: 'http',
    url: partner.url,
    timeout_ms: 8000,
    idempotency: 'enforced',
    conflict: 'processed',
    ...broker,
  };
  const others = Object.entries(destinations?.(partner) ?? {}).map(([name, settings]) => [
    name,
    settings['type'] === undefined ? { ...usual, ...settings } : settings,
  ]);
  return { broker: usual, ...Object.fromEntries(others) };
}

export async function storedOrder(db: Database, id: bigint): Promise<StoredOrder> {
  return (await storedOrders(db, [id]))[0] ?? assert.fail();
}

export async function storedOrders(db: Database, ids: readonly bigint[]): Promise<readonly StoredOrder[]> {
  const rows = await db.query<StoredOrder>(sql`
    SELECT id, idempotency_key, destination, ordering_key, status, resolution, retry_count, last_error, in_doubt,
           first_sent_at, response
    FROM outbox.outbox_orders WHERE id = ANY(${ids}::bigint[])`);
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => byId.get(id) ?? assert.fail(`no order ${id}`));
}

type CheckedOrder = StoredOrder &
  Readonly<{ ledger_status: string; never_expires: boolean; notified: number }>;

type Step = Readonly<{
  outbox_id: bigint;
  status_from: string | null;
  status_to: string;
  retry_count: number;
  lease_epoch: bigint | null;
  actor: string;
}>;

/**
 * Checks what holds for every order whatever the partner did: a sent order has had its effect once, one in doubt at
 * most once, every other one never. Ledger, audit log and notifications agree. Call it when nothing is being sent.
 */
async function assertOneEffectEach(db: Database, effects: EffectLedger): Promise<void> {
  const orders = await db.query<CheckedOrder>(sql`
    SELECT o.*, l.status AS ledger_status, l.expires_at = 'infinity' AS never_expires,
           (SELECT count(*)::int FROM platform.notify_events e
            WHERE e.slice = 'outbox' AND e.kind = 'dead' AND e.item_id = o.id::text) AS notified
    FROM outbox.outbox_orders o JOIN outbox.idempo_ledger l USING (idempotency_key)`);
  const steps = await db.query<Step>(sql`
    SELECT outbox_id, status_from, status_to, retry_count, lease_epoch, actor FROM outbox.outbox_audit ORDER BY id`);
  const stories = Map.groupBy(steps, (step) => step.outbox_id);
  for (const order of orders) {
    assertEffect(order, effects.get(order.idempotency_key)?.count ?? 0);
    assertLedger(order);
    assertStory(order, stories.get(order.id) ?? []);
  }
  const known = new Set(orders.map((order) => order.idempotency_key));
  assert.deepEqual(
    effects.entries().filter(({ key }) => !known.has(key)),
    [],
    'every effect belongs to an order',
  );
}

function nameOf({ id, destination, status, last_error: error }: StoredOrder): string {
  return `order ${id} to ${destination}, ${status} ${error ?? ''}`;
}

function assertEffect(order: CheckedOrder, effects: number): void {
  if (order.status === 'sent') assert.equal(effects, 1, nameOf(order));
  else if (order.in_doubt) assert.ok(effects <= 1, nameOf(order));
  else assert.equal(effects, 0, nameOf(order));
  if (order.status !== 'dead' || order.resolution === 'cancelled') return;
  assert.equal(order.last_error?.startsWith('UNKNOWN: '), order.in_doubt, nameOf(order));
}

function assertLedger(order: CheckedOrder): void {
  const expected = { sent: 'succeeded', dead: 'failed' }[order.status] ?? 'accepted';
  assert.equal(order.ledger_status, expected, nameOf(order));
  const hasEnded = order.status === 'sent' || order.resolution !== null;
  assert.equal(order.never_expires, !hasEnded, nameOf(order));
}

const changes: Readonly<Record<string, readonly string[]>> = {
  queued: ['sending', 'dead'],
  sending: ['sent', 'failed', 'dead', 'queued'],
  failed: ['queued', 'dead'],
  dead: ['dead', 'sent'],
  sent: [],
};

/** Every transition in the audit log is legal and starts from the status of the one before it. */
function assertStory(order: CheckedOrder, steps: readonly Step[]): void {
  const story = `${nameOf(order)}: ${steps.map((step) => step.status_to).join(' > ')}`;
  const [first] = steps;
  assert.deepEqual([first?.status_from, first?.status_to], [null, 'queued'], story);
  for (const [i, step] of steps.entries()) {
    const before = steps[i - 1];
    if (before === undefined) continue;
    assert.equal(step.status_from, before.status_to, story);
    assert.ok(changes[before.status_to]?.includes(step.status_to), story);
    const costs = step.retry_count - before.retry_count;
    assert.ok(costs === 0 || (costs === 1 && step.status_to === 'failed'), story);
    // The worker that claimed the order settles it, unless the reaper does.
    if (before.status_to === 'sending' && step.actor !== 'reaper')
      assert.deepEqual([step.lease_epoch, step.actor], [before.lease_epoch, before.actor], story);
  }
  assert.deepEqual(
    [steps.at(-1)?.status_to, steps.at(-1)?.retry_count],
    [order.status, order.retry_count],
    story,
  );
  const deaths = steps.filter(({ status_from: from, status_to: to }) => from === 'sending' && to === 'dead');
  assert.equal(order.notified, deaths.length, `notified: ${story}`);
}
