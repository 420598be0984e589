import type { Readable } from 'node:stream';
import { sleep } from '../../../../kernel/clock.ts';
import { AppError } from '../../../../kernel/errors.ts';
import {
  createEventStream,
  type EventStream,
  type EventTimes,
} from '../../../../platform/http/streams/event-stream.ts';
import { createStreamSlots } from '../../../../platform/http/streams/stream-slots.ts';
import { hasEnded, type RedriveState } from '../../../domain/redrive.ts';
import { tooManyStreams } from './too-many-streams.ts';

/** What an event shows. */
export type RedriveProgress = Readonly<{ state: RedriveState; receipt: object | null }>;

export type EventsDeps = Readonly<{
  /** Throws `not_found` if there is no such redrive. */
  read: (id: string) => Promise<RedriveProgress>;
  /** Streams end when the server stops; the client then connects to another one. */
  stopping: AbortSignal;
  limits?: Partial<EventLimits>;
}>;

export type EventLimits = EventTimes & Readonly<{ maxStreams: number; everyMs: number }>;

const defaultLimits: EventLimits = {
  maxStreams: 100,
  everyMs: 1000,
  heartbeatMs: 15_000,
  cutAfterMs: 30_000,
};

/** Counting a million items takes a while: at most a tenth of the time goes to it. */
const shareOfTime = 10;

/** All streams of one redrive in this process share one reader of the database. */
type Feed = Readonly<{ streams: Set<EventStream>; left: AbortController }>;

/**
 * Events of a redrive: state and counts, whenever they change, from the database, so it does not matter which process
 * runs it. `progress` while it runs, `end` with the receipt when nothing can change any more.
 */
export function createRedriveEvents({
  read,
  stopping,
  limits,
}: EventsDeps): Readonly<{ open(id: string): Promise<Readable> }> {
  const { maxStreams, everyMs, ...times } = { ...defaultLimits, ...limits };
  const slots = createStreamSlots(maxStreams, tooManyStreams);
  const feeds = new Map<string, Feed>();

  const join = (id: string, stream: EventStream): void => {
    const known = feeds.get(id);
    if (known !== undefined) return void known.streams.add(stream);
    const feed: Feed = { streams: new Set([stream]), left: new AbortController() };
    feeds.set(id, feed);
    void follow(id, feed);
  };
  const leave = (id: string, stream: EventStream): void => {
    const feed = feeds.get(id);
    if (feed?.streams.delete(stream) !== true || feed.streams.size > 0) return;
    feed.left.abort();
    feeds.delete(id);
  };

  const follow = async (id: string, { streams, left }: Feed): Promise<void> => {
    const over = AbortSignal.any([left.signal, stopping]);
    let last = '';
    let isOpen = true;
    for (let restMs = everyMs; isOpen;) {
      await sleep(restMs, over);
      const startedMs = performance.now();
      const now = over.aborted
        ? 'gone'
        : await read(id).catch((error: unknown) => (isGone(error) ? 'gone' : null));
      restMs = Math.max(everyMs, (performance.now() - startedMs) * shareOfTime);
      // While the database is unavailable the heartbeat continues.
      if (now === null) continue;
      isOpen = now !== 'gone' && !isOver(now);
      const text = JSON.stringify(now);
      for (const stream of streams)
        if (now === 'gone') stream.close();
        else if (!isOpen) stream.end('end', text);
        else if (text !== last) stream.offer('progress', text);
      last = text;
    }
    if (feeds.get(id)?.streams === streams) feeds.delete(id);
  };

  return {
    async open(id) {
      const giveBack = slots.take();
      try {
        const first = await read(id);
        const stream: EventStream = createEventStream(times, () => {
          giveBack();
          leave(id, stream);
        });
        if (isOver(first)) stream.end('end', JSON.stringify(first));
        else {
          stream.offer('progress', JSON.stringify(first));
          join(id, stream);
        }
        return stream.readable;
      } catch (error) {
        giveBack();
        throw error;
      }
    },
  };
}

/** Its state is final, and so are its counts. */
function isOver({ state, receipt }: RedriveProgress): boolean {
  return hasEnded(state) && (receipt !== null || state === 'failed' || state === 'expired');
}

function isGone(error: unknown): boolean {
  return error instanceof AppError && error.kind === 'not_found';
}
