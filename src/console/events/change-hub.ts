import type { Readable } from 'node:stream';
import { AppError } from '../../kernel/errors.ts';
import { subjectOf, type Principal } from '../../kernel/access/principal.ts';
import {
  createEventStream,
  type EventStream,
  type EventTimes,
} from '../../platform/http/streams/event-stream.ts';
import { createStreamSlots, type StreamSlots } from '../../platform/http/streams/stream-slots.ts';
import { createChangeReader, type ReaderDeps, type ReaderTimes } from './change-reader.ts';
import { createEventClient, type EventClient } from './event-client.ts';

export type HubDeps = ReaderDeps & Readonly<{ limits?: Partial<HubLimits> }>;

export type HubLimits = EventTimes & ReaderTimes & Readonly<{ maxStreams: number; maxPerPrincipal: number }>;

const defaultLimits: HubLimits = {
  maxStreams: 200,
  maxPerPrincipal: 8,
  everyMs: 500,
  redrivesEveryMs: 1000,
  countEveryMs: 2000,
  beatEveryMs: 3000,
  // Four events a second for each client.
  flushEveryMs: 250,
  heartbeatMs: 15_000,
  cutAfterMs: 30_000,
};

export type ChangeHub = Readonly<{
  /** `principalOf` is asked for every event, because rights may change while the stream is open. */
  open(principalOf: () => Principal, lastEventId: string | undefined): Promise<Readable>;
  stop(): void;
}>;

/**
 * Finds out what has changed, once for all open streams of this process, and only while there are any: nobody who writes
 * does anything for it.
 */
export function createChangeHub(deps: HubDeps): ChangeHub {
  const limits = { ...defaultLimits, ...deps.limits };
  const clients = new Set<EventClient>();
  const takeSlot = createSlots(limits);
  const reader = createChangeReader(deps, limits, clients);
  let running: Readonly<{ ready: Promise<void>; left: AbortController }> | null = null;
  let users = 0;
  let isStopped = false;

  const begin = (): Promise<void> => {
    users += 1;
    if (running === null) {
      const left = new AbortController();
      running = { left, ready: reader.run(left.signal) };
    }
    return running.ready;
  };
  const end = (): void => {
    users -= 1;
    if (users > 0) return;
    running?.left.abort();
    running = null;
  };

  return {
    async open(principalOf, lastEventId) {
      if (isStopped) throw stopping();
      const giveBack = takeSlot(principalOf());
      try {
        await begin();
      } catch (error) {
        end();
        giveBack();
        throw error;
      }
      const stream: EventStream = createEventStream(limits, () => {
        clients.delete(client);
        end();
        giveBack();
      });
      const client = createEventClient(stream, principalOf);
      clients.add(client);
      if (isStopped) client.close();
      else reader.welcome(client, lastEventId);
      return stream.readable;
    },
    stop() {
      isStopped = true;
      for (const client of clients) client.close();
      running?.left.abort();
    },
  };
}

/** Without authentication all are one principal, so only the process is a bound. */
function createSlots({ maxStreams, maxPerPrincipal }: HubLimits): (principal: Principal) => () => void {
  const all = createStreamSlots(maxStreams, tooMany('this process'));
  const bySubject = new Map<string, { slots: StreamSlots; open: number }>();
  return (principal) => {
    const giveBack = all.take();
    if (principal.type === 'local') return giveBack;
    const subject = subjectOf(principal);
    const own = bySubject.get(subject) ?? {
      slots: createStreamSlots(maxPerPrincipal, tooMany(principal.name)),
      open: 0,
    };
    try {
      const giveOwnBack = own.slots.take();
      own.open += 1;
      bySubject.set(subject, own);
      return () => {
        giveBack();
        giveOwnBack();
        own.open -= 1;
        if (own.open === 0) bySubject.delete(subject);
      };
    } catch (error) {
      giveBack();
      throw error;
    }
  };
}

/** Streams end when a tab is closed, not by themselves. */
const retryAfterMs = 30_000;

function tooMany(who: string): (limit: number) => AppError {
  return (limit) =>
    new AppError(
      'SYS_CONSOLE_TOO_MANY_STREAMS',
      'rate_limited',
      `${who} has ${limit} open streams of events`,
      {
        retryAfterMs,
      },
    );
}

function stopping(): AppError {
  return new AppError('SYS_CONSOLE_STOPPING', 'unavailable', 'the server is stopping', {
    retryAfterMs: 1000,
  });
}
