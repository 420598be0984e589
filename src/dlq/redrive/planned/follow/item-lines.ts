import { Readable } from 'node:stream';
import type { Masks } from '../../../../kernel/protect/protection.ts';
import { stringifyWithRaw } from '../../../../platform/http/raw-json.ts';
import { createStreamSlots } from '../../../../platform/http/streams/stream-slots.ts';
import type { Queryable } from '../../../../platform/postgres/database.ts';
import { presentItem } from '../present-redrive.ts';
import { getRedrive, readItems, type ItemFilter } from '../read-redrives.ts';
import { tooManyStreams } from './too-many-streams.ts';

export type ItemLines = Readonly<{ open(filter: ItemFilter): Promise<Readable> }>;

export type LineLimits = Readonly<{ maxStreams: number; pageRows: number; cutAfterMs: number }>;

const defaultLimits: LineLimits = { maxStreams: 16, pageRows: 1000, cutAfterMs: 60_000 };

/**
 * The items of a redrive as lines of JSON, in the order of positions. A page is read when the client has taken the one
 * before, so a million items take the memory of two pages, and a slow client holds no connection to the database. Items
 * that end meanwhile show what they were when their page was read.
 */
export function createItemLines(db: Queryable, masks: Masks, limits: Partial<LineLimits> = {}): ItemLines {
  const { maxStreams, pageRows, cutAfterMs } = { ...defaultLimits, ...limits };
  const slots = createStreamSlots(maxStreams, tooManyStreams);

  async function* pages(filter: ItemFilter, onSlow: () => void): AsyncGenerator<string> {
    for (let after = '0'; ;) {
      const items = await readItems(db, filter, { after, limit: pageRows });
      if (items.length > 0) {
        // A page that is not taken in time belongs to a client that reads no more.
        const slow = setTimeout(onSlow, cutAfterMs);
        try {
          yield items.map((item) => `${stringifyWithRaw(presentItem(item, masks))}\n`).join('');
        } finally {
          clearTimeout(slow);
        }
      }
      if (items.length < pageRows) return;
      after = String(items.at(-1)?.position);
    }
  }

  return {
    async open(filter) {
      await getRedrive(db, filter.redriveId);
      const giveBack = slots.take();
      const readable: Readable = Readable.from(
        pages(filter, () => readable.destroy()),
        { highWaterMark: 1 },
      );
      readable.once('close', giveBack);
      return readable;
    },
  };
}
