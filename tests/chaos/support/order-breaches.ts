import type { Database } from '../../../src/platform/postgres/database.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import type { Effect } from '../../support/partner.ts';

/** An order at rest, with what the ledger knows of it. */
type Row = Readonly<{
  id: bigint | null;
  key: string;
  destination: string;
  status: string;
  retryCount: number;
  lastError: string | null;
  inDoubt: boolean;
  resolution: string | null;
  orderingKey: string | null;
  orderingSeq: bigint | null;
  ledgerStatus: string | null;
  isLedgerOpen: boolean;
  isLedgerOfOrder: boolean;
  outsideId: string | null;
  isTold: boolean;
}>;

type AuditRow = Readonly<{
  outboxId: bigint;
  from: string | null;
  to: string;
  retryCount: number;
  actor: string;
  reason: string | null;
}>;

export type Account = Readonly<{
  /** Every key that was accepted; no other one may be there. */
  accepted: readonly string[];
  /** What has really happened outside, in the order in which it first did. */
  effects: readonly Effect[];
  retryMax: number;
  /** Destinations that may be asked once more, when the worker of the last attempt was lost: that counts as one. */
  askable?: readonly string[];
  /** How often each key was asked for outside, where that was kept. */
  requests?: ReadonlyMap<string, number>;
}>;

/**
 * What must hold after any fault, once the system is at rest, as far as it does not: every accepted key is exactly
 * one order and has ended; a sent one has one effect outside, and no other has any, but for those that are in doubt
 * and say so; the ledger agrees with the orders, the audit tells each story without a gap and within the budget, and
 * those of one ordering key have happened in their order.
 */
export async function findBreaches(db: Database, account: Account): Promise<readonly string[]> {
  const rows = await readRows(db);
  const audit = Map.groupBy(await readAudit(db), ({ outboxId }) => outboxId);
  const effects = new Map(account.effects.map((effect) => [effect.key, effect]));
  return [
    ...lostOrUninvited(rows, account),
    ...rows.flatMap((row) => {
      const say = (what: string): string => `${row.key} (${nameOf(row)}): ${what}`;
      const story = (row.id === null ? undefined : audit.get(row.id)) ?? [];
      const requests = account.requests?.get(row.key);
      return [
        ...wrongEnd(row),
        ...wrongEffect(row, effects.get(row.key)),
        ...wrongLedger(row, effects.get(row.key)),
        ...wrongStory(row, story, budgetOf(row, account)),
        ...wrongWorkers(story),
        ...(requests === undefined ? [] : wrongAttempts(story, requests)),
      ].map(say);
    }),
    ...wrongOrder(rows, account.effects),
  ];
}

async function readRows(db: Database): Promise<readonly Row[]> {
  return db.query<Row>(sql`
    SELECT o.id, idempotency_key AS key, o.destination, o.status, o.retry_count AS "retryCount",
           o.last_error AS "lastError", o.in_doubt AS "inDoubt", o.resolution, o.ordering_key AS "orderingKey",
           o.ordering_seq AS "orderingSeq", l.status AS "ledgerStatus", l.outside_id AS "outsideId",
           COALESCE(l.expires_at = 'infinity', true) AS "isLedgerOpen",
           COALESCE(l.outbox_id = o.id AND l.request_digest = o.request_digest, false) AS "isLedgerOfOrder",
           EXISTS (SELECT 1 FROM platform.notify_events e
                   WHERE e.slice = 'outbox' AND e.kind = 'dead' AND e.item_id = o.id::text) AS "isTold"
    FROM outbox.outbox_orders o FULL JOIN outbox.idempo_ledger l USING (idempotency_key)
    ORDER BY o.id`);
}

async function readAudit(db: Database): Promise<readonly AuditRow[]> {
  return db.query<AuditRow>(sql`
    SELECT outbox_id AS "outboxId", status_from AS from, status_to AS to, retry_count AS "retryCount", actor,
           reason
    FROM outbox.outbox_audit ORDER BY outbox_id, id`);
}

function nameOf({ destination, status, resolution, lastError, retryCount }: Row): string {
  return [destination, status, resolution, `retries ${retryCount}`, lastError]
    .filter((part) => part !== null)
    .join(', ');
}

function lostOrUninvited(rows: readonly Row[], { accepted, effects }: Account): readonly string[] {
  const there = new Set(rows.map(({ key }) => key));
  const invited = new Set(accepted);
  return [
    ...accepted.filter((key) => !there.has(key)).map((key) => `${key} was accepted and is lost`),
    ...[...there].filter((key) => !invited.has(key)).map((key) => `${key} is there and was not accepted`),
    ...effects.filter(({ key }) => !invited.has(key)).map(({ key }) => `${key} happened uninvited`),
  ];
}

function wrongEnd(row: Row): readonly string[] {
  if (row.id === null) return ['is in the ledger without an order'];
  const hasEnded = row.status === 'sent' || row.status === 'dead';
  const mustBeTold = row.status === 'dead' && row.resolution !== 'cancelled';
  return [
    ...(hasEnded ? [] : ['has not come to an end']),
    ...(mustBeTold && !row.isTold ? ['is dead and nobody was told'] : []),
  ];
}

function wrongEffect(row: Row, effect: Effect | undefined): readonly string[] {
  const count = effect?.count ?? 0;
  const mayHaveHappened = row.inDoubt && (row.lastError?.startsWith('UNKNOWN:') || row.resolution !== null);
  const [least, most] = row.status === 'sent' ? [1, 1] : [0, mayHaveHappened ? 1 : 0];
  return count < least || count > most ? [`has happened ${count} times`] : [];
}

function wrongLedger(row: Row, effect: Effect | undefined): readonly string[] {
  const { status, resolution, ledgerStatus } = row;
  // A person decides about what is dead; that it has happened after all may become known later still.
  const expected =
    status === 'sent' ? ['succeeded'] : resolution === null ? ['failed'] : ['failed', 'succeeded'];
  const isOver = status === 'sent' || resolution !== null;
  const known = effect && (JSON.parse(effect.answer) as { broker_order_id: string }).broker_order_id;
  return [
    ...(row.isLedgerOfOrder ? [] : ['has no ledger row of its own']),
    ...(expected.includes(ledgerStatus ?? '') ? [] : [`is ${ledgerStatus} in the ledger`]),
    ...(row.isLedgerOpen === isOver ? [`its ledger row ${isOver ? 'never ends' : 'ends'}`] : []),
    ...(ledgerStatus === 'succeeded' && known === undefined ? ['the ledger tells of no effect'] : []),
    ...(row.outsideId !== null && row.outsideId !== known
      ? [`is ${row.outsideId} outside, not ${known}`]
      : []),
  ];
}

const legal = new Set([
  'null>queued',
  'queued>sending',
  'sending>sent',
  'sending>failed',
  'sending>dead',
  'sending>queued',
  'failed>queued',
  'queued>dead',
  'failed>dead',
  'dead>dead',
  'dead>sent',
]);

function budgetOf({ destination }: Row, { retryMax, askable = [] }: Account): number {
  return askable.includes(destination) ? retryMax + 1 : retryMax;
}

function wrongStory(row: Row, story: readonly AuditRow[], budget: number): readonly string[] {
  const told = story.map(({ from, to }) => `${from}>${to}`).join(' ');
  const isGapless = story.every(({ from }, i) => from === (story[i - 1]?.to ?? null));
  const isLegal = story.every(
    ({ from, to, reason }) => legal.has(`${from}>${to}`) || (from === to && reason === 'late success'),
  );
  const counts = story.map(({ retryCount }) => retryCount);
  const last = story.at(-1);
  return [
    ...(isGapless ? [] : [`its story has a gap: ${told}`]),
    ...(isLegal ? [] : [`its story is not possible: ${told}`]),
    ...(last?.to === row.status ? [] : [`its story ends otherwise: ${told}`]),
    ...(last?.retryCount === row.retryCount ? [] : [`its story ends with ${last?.retryCount} retries`]),
    ...(counts.every((count, i) => count >= (counts[i - 1] ?? 0)) ? [] : [`retries: ${counts.join(' ')}`]),
    ...(Math.max(...counts) <= budget ? [] : [`retries beyond ${budget}: ${counts.join(' ')}`]),
  ];
}

/** An attempt is ended by who began it, or by the reaper. */
function wrongWorkers(story: readonly AuditRow[]): readonly string[] {
  const strangers = story.filter(({ from, to, actor }, i) => {
    if (from !== 'sending' || to === 'sending' || actor === 'reaper') return false;
    return (
      actor !== story.findLast((row, j) => j < i && row.from === 'queued' && row.to === 'sending')?.actor
    );
  });
  return strangers.map(({ actor, to }) => `an attempt of another was ended as ${to} by ${actor}`);
}

function wrongAttempts(story: readonly AuditRow[], requests: number): readonly string[] {
  const attempts = story.filter(({ to, from }) => to === 'sending' && from === 'queued').length;
  return requests <= attempts ? [] : [`was sent ${requests} times in ${attempts} attempts`];
}

/** A corrected order stands in the place of the one that it supersedes, and so after it. */
function wrongOrder(rows: readonly Row[], effects: readonly Effect[]): readonly string[] {
  const places = new Map(effects.map(({ key }, place) => [key, place]));
  const keyed = rows.filter(({ orderingKey }) => orderingKey !== null);
  const lanes = Map.groupBy(keyed, ({ destination, orderingKey }) => `${destination}/${orderingKey}`);
  return [...lanes].flatMap(([lane, members]) => {
    const happened = members
      .toSorted(
        (a, b) =>
          Number((a.orderingSeq ?? 0n) - (b.orderingSeq ?? 0n)) || Number((a.id ?? 0n) - (b.id ?? 0n)),
      )
      .map(({ key }) => ({ key, place: places.get(key) }))
      .filter((one): one is { key: string; place: number } => one.place !== undefined);
    return happened.flatMap(({ key, place }, i) => {
      const before = happened[i - 1];
      return before === undefined || before.place < place
        ? []
        : [`${lane}: ${key} happened before ${before.key}`];
    });
  });
}
