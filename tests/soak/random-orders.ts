import { sleep } from '../../src/kernel/clock.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { Chance } from './chance.ts';
import type { Fleet } from './fleet.ts';
import { patiently } from './patiently.ts';
import { postJson, type Told } from './post-json.ts';
import type { Tally } from './tally.ts';

/** One order, and everything that is tried with its key. */
type Plan = Readonly<{
  key: string;
  destination: string;
  orderingKey: string | null;
  request: Readonly<Record<string, unknown>>;
  by: 'sql' | 'http';
  /** How many ask for the same at once, over HTTP. */
  times: number;
  /** Somebody else then uses the key for another order. */
  isMistaken: boolean;
  /** A transaction that asks for it is rolled back before. */
  isRolledBackFirst: boolean;
}>;

/** What was asked for, and what the answers got wrong. */
export type Placed = Readonly<{ accepted: readonly string[]; breaches: readonly string[] }>;

export type LoadOptions = Readonly<{
  count: number;
  perSecond: number;
  db: Database;
  fleet: Fleet;
  chance: Chance;
  tally: Tally;
}>;

const placers = 12;
const lanes = 80;

/** Places orders as many callers would: at a steady pace, again where there was no answer, and some of them twice. */
export async function placeOrders(options: LoadOptions): Promise<Placed> {
  const { count, perSecond, chance } = options;
  const plans = Array.from({ length: count }, (_, i) => drawPlan(chance, i));
  const accepted: string[] = [];
  const breaches: string[] = [];
  const beganAtMs = performance.now();
  let next = 0;
  const placeNext = async (): Promise<void> => {
    for (let plan = plans[next]; plan !== undefined; plan = plans[next]) {
      const dueAtMs = beganAtMs + (next / perSecond) * 1000;
      next += 1;
      await sleep(Math.max(0, dueAtMs - performance.now()));
      breaches.push(...(await place(options, plan)));
      accepted.push(plan.key);
    }
  };
  await Promise.all(Array.from({ length: placers }, placeNext));
  return { accepted, breaches };
}

function drawPlan(chance: Chance, i: number): Plan {
  const by = chance.is(0.6) ? 'sql' : 'http';
  return {
    key: `order-${String(i).padStart(6, '0')}`,
    destination: chance.pick(['broker', 'broker', 'broker', 'asked', 'blind']),
    orderingKey: chance.is(1 / 3) ? `lane-${chance.between(1, lanes)}` : null,
    request: { n: i, symbol: chance.pick(['USDJPY', 'EURUSD']), qty: chance.between(1, 100_000) },
    by,
    times: by === 'http' && chance.is(0.15) ? chance.between(2, 4) : 1,
    isMistaken: chance.is(0.03),
    isRolledBackFirst: by === 'sql' && chance.is(0.03),
  };
}

async function place(options: LoadOptions, plan: Plan): Promise<readonly string[]> {
  const { tally } = options;
  tally.count(`orders by ${plan.by}`);
  if (plan.isRolledBackFirst) await rollBack(options, plan);
  const breaches = plan.by === 'sql' ? await placeBySql(options, plan) : await placeByHttp(options, plan);
  if (!plan.isMistaken) return breaches;
  tally.count('the same key for another order');
  const told = await postUntilTold(options, { ...plan, request: { ...plan.request, qty: -1 } });
  return told.status === 422
    ? breaches
    : [...breaches, `${plan.key}: another order for the same key was answered ${told.status}`];
}

class RolledBack extends Error {}

async function rollBack({ db, tally }: LoadOptions, plan: Plan): Promise<void> {
  tally.count('orders rolled back by their caller');
  const key = `${plan.key}-undone`;
  await patiently(() =>
    db.transaction(async (tx) => {
      await tx.query(addOrder({ ...plan, key }));
      throw new RolledBack();
    }),
  ).catch((error: unknown) => {
    if (!(error instanceof RolledBack)) throw error;
  });
}

const addOrder = ({ key, destination, orderingKey, request }: Plan) => sql`
  SELECT outcome FROM outbox.add_order(${JSON.stringify(request)}::json, ${key}, ${destination}, ${orderingKey})`;

/** An answer that was lost may have been a commit: the same order again is no second one. */
async function placeBySql({ db }: LoadOptions, plan: Plan): Promise<readonly string[]> {
  for (;;) {
    const [row] = await patiently(() => db.query<{ outcome: string }>(addOrder(plan)));
    if (row?.outcome === 'created' || row?.outcome === 'replayed') return [];
    if (row?.outcome !== 'busy') return [`${plan.key}: add_order answered ${row?.outcome}`];
  }
}

async function placeByHttp(options: LoadOptions, plan: Plan): Promise<readonly string[]> {
  if (plan.times > 1) options.tally.count('the same order again, at once', plan.times - 1);
  const asks = Array.from({ length: plan.times }, () => postUntilTold(options, plan));
  const answers = await Promise.all(asks);
  const isFine = answers.every(({ status }) => status === 200 || status === 201);
  const ids = new Set(answers.map(({ body }) => (body as { id?: number }).id));
  const created = answers.filter(({ status }) => status === 201).length;
  return [
    ...(isFine ? [] : [`${plan.key}: answered ${answers.map(({ status }) => status).join(' ')}`]),
    ...(ids.size === 1 ? [] : [`${plan.key}: has the ids ${[...ids].join(' ')}`]),
    ...(created <= 1 ? [] : [`${plan.key}: was created ${created} times`]),
  ];
}

/** A caller that hears nothing, or to come later, asks again, and any replica will do. */
async function postUntilTold({ fleet, chance, tally }: LoadOptions, plan: Plan): Promise<Told> {
  const { key, destination, orderingKey, request } = plan;
  const body = {
    destination,
    idempotency_key: key,
    request,
    ...(orderingKey === null ? {} : { ordering_key: orderingKey }),
  };
  for (;;) {
    const replicas = fleet.running();
    const told =
      replicas.length === 0
        ? null
        : await postJson(`${chance.pick(replicas).url}/api/v1/outbox/orders`, body, key);
    if (told !== null && told.status !== 503 && told.status !== 409) return told;
    tally.count(told === null ? 'callers without an answer' : `callers answered ${told.status}`);
    await sleep(chance.between(20, 200));
  }
}
