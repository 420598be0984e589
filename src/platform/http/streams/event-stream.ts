import { Readable } from 'node:stream';

/** The events of one client. */
export type EventStream = Readonly<{
  readable: Readable;
  /** Replaces an event that the client has not read yet: only the newest counts. */
  offer(event: string, data: string, id?: string): void;
  /** Whether the client has taken everything so far, so that an offer replaces nothing. */
  isFree(): boolean;
  /** The last event; the stream ends when the client has read it. */
  end(event: string, data: string): void;
  /** Ends the stream without another event. */
  close(): void;
}>;

export type EventTimes = Readonly<{
  /** A comment at least this often, so that proxies keep the connection and a lost client is noticed. */
  heartbeatMs: number;
  /** A client that has read nothing for this long is disconnected. */
  cutAfterMs: number;
}>;

/** Server-sent events with at most one event in memory, however slowly the client reads. */
export function createEventStream({ heartbeatMs, cutAfterMs }: EventTimes, onClose: () => void): EventStream {
  let isWanted = false;
  let isLast = false;
  let pending: Readonly<{ text: string; sinceMs: number }> | null = null;

  const flush = (): void => {
    if (!isWanted || pending === null) return;
    const { text } = pending;
    pending = null;
    isWanted = readable.push(text);
    if (isLast) readable.push(null);
  };
  const put = (text: string): void => {
    if (isLast) return;
    pending = { text, sinceMs: pending?.sinceMs ?? performance.now() };
    flush();
  };
  const readable = new Readable({
    // The next event is taken only when the last one is on its way.
    highWaterMark: 1,
    read() {
      isWanted = true;
      flush();
    },
    destroy(error, done) {
      clearInterval(beating);
      onClose();
      done(error);
    },
  });
  const beating = setInterval(
    () => {
      if (pending === null) put(': keep-alive\n\n');
      else if (performance.now() - pending.sinceMs >= cutAfterMs) readable.destroy();
    },
    Math.min(heartbeatMs, cutAfterMs),
  );
  const textOf = (event: string, data: string, id?: string): string =>
    `event: ${event}\ndata: ${data}\n${id === undefined ? '' : `id: ${id}\n`}\n`;

  return {
    readable,
    offer: (event, data, id) => put(textOf(event, data, id)),
    isFree: () => isWanted && pending === null,
    end(event, data) {
      if (isLast) return;
      pending = { text: textOf(event, data), sinceMs: pending?.sinceMs ?? performance.now() };
      isLast = true;
      flush();
    },
    close() {
      if (isLast) return;
      pending = null;
      isLast = true;
      readable.push(null);
    },
  };
}
