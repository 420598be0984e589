import { Readable } from 'node:stream';
import type { Queryable } from '../../platform/postgres/database.ts';
import type { CoverEvent } from '../cover-event.ts';
import { selectRange, selectSeals } from '../events-table.ts';

const blocksPerPage = 100;
const eventsPerPage = 1000;
/** A page that is not taken in this time belongs to a client that reads no more. */
const cutAfterMs = 60_000;

/**
 * All sealed events after a block, as lines of JSON: the events of a round, then its blocks. A page is read when the
 * client has taken the one before, so the whole log takes the memory of a few pages.
 */
export type ExportDeps = Readonly<{ db: Queryable; cover: CoverEvent }>;

export function exportLines(deps: ExportDeps, afterBlock: number): Readable {
  const readable: Readable = Readable.from(
    lines(deps, afterBlock, () => readable.destroy()),
    { highWaterMark: 1 },
  );
  return readable;
}

async function* lines(
  { db, cover }: ExportDeps,
  afterBlock: number,
  onSlow: () => void,
): AsyncGenerator<string> {
  let lastSeq: number | null = null;
  for (let block = afterBlock; ;) {
    const seals = await selectSeals(db, { after: block, limit: blocksPerPage });
    for (const seal of seals) {
      // The blocks of one round have the same range: its events come once.
      if (seal.last_seq !== lastSeq)
        for (let after = seal.after_seq; ;) {
          const events = await selectRange(db, { after, upTo: seal.last_seq, limit: eventsPerPage });
          yield* timely(
            events.map((event) => `${JSON.stringify({ type: 'event', ...cover(event) })}\n`).join(''),
            onSlow,
          );
          after = events.at(-1)?.seq ?? after;
          if (events.length < eventsPerPage) break;
        }
      lastSeq = seal.last_seq;
      yield* timely(`${JSON.stringify({ type: 'seal', ...seal })}\n`, onSlow);
    }
    const last = seals.at(-1);
    if (last === undefined || seals.length < blocksPerPage) return;
    block = last.block;
  }
}

function* timely(text: string, onSlow: () => void): Generator<string> {
  if (text === '') return;
  const slow = setTimeout(onSlow, cutAfterMs);
  try {
    yield text;
  } finally {
    clearTimeout(slow);
  }
}
