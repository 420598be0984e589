import type { Database, Queryable } from '../platform/postgres/database.ts';
import {
  advance,
  groupKey,
  isTellable,
  tallyEvents,
  type Advance,
  type GroupName,
  type NamedTally,
} from './grouping.ts';
import type { Message, Speaker } from './message.ts';
import { requestTo, type Notifier } from './notifier.ts';
import {
  beginRound,
  findEnded,
  findGroups,
  removeGroups,
  storeGroups,
  takeEvents,
  type NotifierGroup,
} from './postgres-groups.ts';

/** Adds an order of the system itself, in the transaction. */
export type AddOrder = (
  tx: Queryable,
  order: Readonly<{ destination: string; id: string; request: unknown }>,
) => Promise<void>;

export type TellDeps = Readonly<{
  db: Database;
  /** By the names of their destinations. */
  notifiers: ReadonlyMap<string, Notifier>;
  speaker: Speaker;
  addOrder: AddOrder;
  makeId: () => string;
  /** How many events, and how many groups, one round takes at most. */
  batchSize?: number;
}>;

/** A message that was handed to the outbox. */
export type Handed = Readonly<{ notifier: string; message: Message }>;

export type Round = Readonly<{
  events: number;
  handed: readonly Handed[];
  /** There may be more to do at once. */
  isFull: boolean;
}>;

/**
 * One round: events are taken, groups move on, and orders are added, all in one transaction. Whatever ends it early
 * leaves all three as they were, so an event is neither lost nor told twice.
 */
export async function tellPeople(deps: TellDeps): Promise<Round> {
  const { notifiers, batchSize = 500 } = deps;
  return deps.db.transaction(async (tx) => {
    const { nowMs } = await beginRound(tx);
    const events = await takeEvents(tx, batchSize);
    const tallies = tallyEvents(events.filter(isTellable));
    const cooldowns = [...notifiers].map(([notifier, { cooldownMs }]) => ({ notifier, cooldownMs }));
    const ended = await findEnded(tx, cooldowns, { nowMs, limit: batchSize });
    const known = await findGroups(
      tx,
      [...notifiers.keys()],
      tallies.map(({ name }) => name),
    );
    const steps = stepsOf(notifiers, tallies, [...known, ...ended], nowMs);
    await storeSteps(tx, steps);
    const handed = await handOver(tx, deps, { steps, nowMs });
    return {
      events: events.length,
      handed,
      isFull: events.length === batchSize || ended.length === batchSize,
    };
  });
}

type Step = Readonly<{ notifier: string; name: GroupName; after: Advance }>;

/** What becomes of every group that has got events, or whose cool-down is over. */
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

async function handOver(
  tx: Queryable,
  { notifiers, speaker, addOrder, makeId }: TellDeps,
  { steps, nowMs }: Readonly<{ steps: readonly Step[]; nowMs: number }>,
): Promise<readonly Handed[]> {
  const handed: Handed[] = [];
  for (const { notifier: destination, name, after } of steps) {
    const notifier = notifiers.get(destination);
    if (after.told === undefined || notifier === undefined) continue;
    const message: Message = { id: makeId(), atMs: nowMs, about: name, told: after.told };
    await addOrder(tx, { destination, id: message.id, request: requestTo(notifier, speaker, message) });
    handed.push({ notifier: destination, message });
  }
  return handed;
}
