import { pick, type Chance } from '../orders-pipeline/chance.ts';
import { tradedSymbols } from './partner.ts';
import type { StuckOrder } from './redrive-client.ts';

/** An order as Redrive's API takes it. */
export type DeskOrder = Readonly<{
  destination: 'broker' | 'orders_topic';
  idempotency_key: string;
  /** Orders of one account go out one after another. */
  ordering_key?: string;
  request: Readonly<Record<string, unknown>>;
}>;

export type Turn = Readonly<{
  number: number;
  /** Begins every key, so that those of two runs differ. */
  run: string;
  chance: Chance;
  /** Whether there may be another order that no broker takes. */
  mayMistype: boolean;
  /** Whether such an order stands in front of the hasty account already. */
  isHastyHeld: boolean;
}>;

/** The account whose orders are typed by hand, and in haste. */
export const hastyAccount = 'account-7';

/** What the desk types, and what it means. */
const [misspelt, meant] = ['USDJPX', 'USDJPY'] as const;
const basketSize = 8;

const prices: Readonly<Record<(typeof tradedSymbols)[number], number>> = {
  USDJPY: 145,
  EURUSD: 1.12,
  GBPUSD: 1.31,
  EURJPY: 162.4,
};

/**
 * What the desk does in one turn: mostly one order. At fixed places, so that any 40 turns in a row have each, it
 * does what is interesting: mistypes a symbol, sells a whole basket at once, tells its own topic where it stands.
 */
export function ordersOfTurn(turn: Turn): readonly DeskOrder[] {
  const { number, mayMistype, isHastyHeld } = turn;
  if (number % 30 === 15)
    return Array.from({ length: basketSize }, (_, i) => trade(turn, { name: `basket-${i + 1}` }));
  switch (number % 40) {
    case 6:
      if (mayMistype && !isHastyHeld) return [trade(turn, { account: hastyAccount, symbol: misspelt })];
      break;
    case 7:
    case 8:
      if (!isHastyHeld) return [trade(turn, { account: hastyAccount })];
      break;
    case 26:
      if (mayMistype) return [trade(turn, { symbol: misspelt })];
      break;
  }
  if (number % 4 === 0) return [position(turn)];
  return [trade(turn, number % 2 === 0 ? {} : { account: accountOf(turn) })];
}

/** An order that no broker takes: where it stands in the way, and what was meant. */
export type Mistake = Readonly<{
  id: number;
  symbol: string;
  account: string | null;
  corrected: Readonly<Record<string, unknown>>;
}>;

/** Null for an order that is not one of the desk's mistakes, or that would have to be looked up outside first. */
export function mistakeIn({ id, ordering_key: account, in_doubt, request }: StuckOrder): Mistake | null {
  if (request?.['symbol'] !== misspelt || in_doubt) return null;
  const { intent, qty, limit_price } = request;
  return { id, symbol: misspelt, account, corrected: { symbol: meant, intent, qty, limit_price } };
}

type Wish = Readonly<{ account?: string; symbol?: typeof misspelt; name?: string }>;

function trade(turn: Turn, { account, symbol, name }: Wish): DeskOrder {
  const key = keyOf(turn, name);
  const ask = (what: string): number => turn.chance(`${what} of ${key}`);
  const intended = symbol === misspelt ? meant : pick(tradedSymbols, ask('symbol'));
  const price = prices[intended] * (0.99 + ask('price') / 50);
  return {
    destination: 'broker',
    idempotency_key: key,
    ...(account === undefined ? {} : { ordering_key: account }),
    request: {
      symbol: symbol ?? intended,
      intent: pick(['BUY', 'SELL'], ask('intent')),
      qty: 1000 * (1 + Math.floor(ask('quantity') * 10)),
      limit_price: Number(price.toFixed(3)),
      trace_id: `desk-${key}`,
      meta: { source: 'demo desk' },
    },
  };
}

function position(turn: Turn): DeskOrder {
  const account = accountOf(turn);
  return {
    destination: 'orders_topic',
    idempotency_key: keyOf(turn, 'position'),
    ordering_key: account,
    request: {
      event: 'position',
      account,
      open_orders: Math.floor(turn.chance(`position ${turn.number}`) * 9),
    },
  };
}

function accountOf({ number, chance }: Turn): string {
  return `account-${1 + Math.floor(chance(`account of turn ${number}`) * 4)}`;
}

function keyOf({ run, number }: Turn, name?: string): string {
  return ['fx', run, String(number).padStart(4, '0'), ...(name === undefined ? [] : [name])].join('-');
}
