import type { Database, Queryable } from '../platform/postgres/database.ts';
import {
  advance,
  groupKey,
  isNotifiable,
  tallyEvents,
  type Advance,
  type GroupName,
  type NamedTally,
} from './grouping.ts';
import type { Message, Source } from './message.ts';
import { requestTo, type Notifier } from './notifier.ts';
import {
  beginRound,
  findEnded,
  findGroups,
  removeGroups,
  storeGroups,
  takeEvents,
  type MasksOf,
  type NotifierGroup,
} from './postgres-groups.ts';

/** Adds an internal order in the transaction. */
export type AddOrder = (
  tx: Queryable,
  order: Readonly<{ destination: string; id: string; request: unknown }>,
) => Promise<void>;

export type RoundDeps = Readonly<{
  db: Database;
  /** By destination name. */
  notifiers: ReadonlyMap<string, Notifier>;
  source: Source;
  addOrder: AddOrder;
  masksOf: MasksOf;
  makeId: () => string;
  /** The maximum number of events, and of groups, per round. */
  batchSize?: number;
}>;

/** A message that was added to the outbox. */
export type QueuedMessage = Readonly<{ notifier: string; message: Message }>;

export type Round = Readonly<{
  events: number;
  queued: readonly QueuedMessage[];
  /** There may be more to do immediately. */
  isFull: boolean;
}>;

/**
 * One round takes events, advances their groups and adds orders to the outbox, all in one transaction: no event is
 * lost or sent twice.
 */
export async function runRound(deps: RoundDeps): Promise<Round> {
  const { notifiers, masksOf, batchSize = 500 } = deps;
  return deps.db.transaction(async (tx) => {
    const { nowMs } = await beginRound(tx);
    const events = await takeEvents(tx, batchSize, masksOf);
    const tallies = tallyEvents(events.filter(isNotifiable));
    const cooldowns = [...notifiers].map(([notifier, { cooldownMs }]) => ({ notifier, cooldownMs }));
    const ended = await findEnded(tx, cooldowns, { nowMs, limit: batchSize });
    const known = await findGroups(
      tx,
      [...notifiers.keys()],
      tallies.map(({ name }) => name),
    );
    const steps = stepsOf(notifiers, tallies, [...known, ...ended], nowMs);
    await storeSteps(tx, steps);
    const queued = await queueMessages(tx, deps, { steps, nowMs });
    return {
      events: events.length,
      queued,
      isFull: events.length === batchSize || ended.length === batchSize,
    };
  });
}

type Step = Readonly<{ notifier: string; name: GroupName; after: Advance }>;

/** The next step of every group that has new events or whose cooldown has ended. */
function stepsOf(
  notifiers: ReadonlyMap<string, Notifier>,
  tallies: readonly NamedTally[],
  found: readonly NotifierGroup[],
  nowMs: number,
): readonly Step[] {
  return [...notifiers].flatMap(([notifier, { cooldownMs, slices }]) => {
    const came = tallies.filter(({ name }) => slices.includes(name.slice));
    const own = found.filter((each) => each.notifier === notifier);
    const tallyOf = new Map(came.map(({ name, tally }) => [groupKey(name), tally]));
    const groupOf = new Map(own.map(({ name, group }) => [groupKey(name), group]));
    const names = new Map([...came, ...own].map(({ name }) => [groupKey(name), name]));
    return [...names].map(([key, name]) => ({
      notifier,
      name,
      after: advance(groupOf.get(key), tallyOf.get(key), { nowMs, cooldownMs }),
    }));
  });
}

async function storeSteps(tx: Queryable, steps: readonly Step[]): Promise<void> {
  await storeGroups(
    tx,
    steps.flatMap(({ notifier, name, after: { group } }) =>
      group === undefined ? [] : [{ notifier, name, group }],
    ),
  );
  await removeGroups(
    tx,
    steps.filter(({ after }) => after.group === undefined),
  );
}

async function queueMessages(
  tx: Queryable,
  { notifiers, source, addOrder, makeId }: RoundDeps,
  { steps, nowMs }: Readonly<{ steps: readonly Step[]; nowMs: number }>,
): Promise<readonly QueuedMessage[]> {
  const queued: QueuedMessage[] = [];
  for (const { notifier: destination, name, after } of steps) {
    const notifier = notifiers.get(destination);
    if (after.notice === undefined || notifier === undefined) continue;
    const message: Message = { id: makeId(), atMs: nowMs, about: name, notice: after.notice };
    await addOrder(tx, { destination, id: message.id, request: requestTo(notifier, source, message) });
    queued.push({ notifier: destination, message });
  }
  return queued;
}
