import { dayMs } from '../../kernel/duration.ts';
import { createRound, firstPrevious, hashOfBlock, type AuditEvent, type Seal } from '../chain.ts';

export type Problem =
  | 'block_missing'
  | 'block_changed'
  | 'events_missing'
  | 'events_added'
  | 'events_changed'
  | 'anchor_differs';

export type Finding = Readonly<{ block: number; problem: Problem; message: string }>;

/** A partition that retention has dropped: `usual 2026-11-01`. */
export type Dropped = ReadonlySet<string>;

/** What the blocks say about themselves; null if they continue the chain. Checked before any event is read. */
export function checkBlocks(before: Seal | null, round: readonly Seal[]): Finding | null {
  let last = before;
  for (const seal of round) {
    const block = (last?.block ?? 0) + 1;
    if (seal.block !== block)
      return { block, problem: 'block_missing', message: `block ${block} is missing; ${seal.block} follows` };
    const isSameRound = last !== before && last?.after_seq === seal.after_seq;
    const after = isSameRound ? seal.after_seq : (last?.last_seq ?? 0);
    const isContinued = seal.previous === (last?.hash ?? firstPrevious) && seal.after_seq === after;
    if (!isContinued || seal.hash !== hashOfBlock(seal.previous, seal))
      return {
        block,
        problem: 'block_changed',
        message: `block ${block} does not fit to the block before, or was changed`,
      };
    last = seal;
  }
  return null;
}

/** Compares the events of a round with what its blocks say about them. */
export function createEventCheck(round: readonly Seal[], dropped: Dropped) {
  const found = createRound();
  return {
    add: (event: AuditEvent): void => found.add(event),
    end(): Finding | null {
      const parts = new Map(found.end().map((part) => [`${part.kept} ${part.month}`, part]));
      for (const seal of round) {
        const name = `${seal.kept} ${seal.month}`;
        const part = parts.get(name);
        parts.delete(name);
        if (part?.rows_sha256 === seal.rows_sha256) continue;
        const events = part?.events ?? 0;
        if (events === 0 && dropped.has(name)) continue;
        return difference(seal, events);
      }
      const [added] = parts.values();
      const [first] = round;
      if (added === undefined || first === undefined) return null;
      return {
        block: first.block,
        problem: 'events_added',
        message: `${added.events} events between ${first.after_seq} and ${first.last_seq} are in no block`,
      };
    },
  };
}

function difference({ block, events, after_seq, last_seq }: Seal, found: number): Finding {
  const where = `block ${block} (seq ${after_seq + 1} to ${last_seq})`;
  if (found < events)
    return {
      block,
      problem: 'events_missing',
      message: `${events - found} of ${events} events of ${where} are missing`,
    };
  if (found > events)
    return { block, problem: 'events_added', message: `${found - events} events were added to ${where}` };
  return { block, problem: 'events_changed', message: `events of ${where} were changed` };
}

/** Retention drops a partition only this long after its end: before, its events must be there. */
const keptForMs = { usual: 400 * dayMs, long: 7 * 365 * dayMs };

export function mayBeDropped({ kept, month }: Pick<Seal, 'kept' | 'month'>, nowMs: number): boolean {
  const end = new Date(`${month}T00:00:00Z`);
  if (kept === 'long') end.setUTCFullYear(end.getUTCFullYear() + 1);
  else end.setUTCMonth(end.getUTCMonth() + 1);
  return end.getTime() <= nowMs - keptForMs[kept];
}
