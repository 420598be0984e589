import assert from 'node:assert/strict';

export type ServerEvent = Readonly<{ event: string; data: Readonly<Record<string, unknown>>; id: string }>;

/** A client of server-sent events that keeps all of them. */
export type EventReader = Readonly<{
  status: number;
  headers: Headers;
  events: readonly ServerEvent[];
  /** Resolves with the first event from `after` on that fits. */
  until(fits: (event: ServerEvent) => boolean, after?: number): Promise<ServerEvent>;
  ended: Promise<void>;
  close(): void;
}>;

const patienceMs = 15_000;

export async function readEvents(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<EventReader> {
  const stop = new AbortController();
  const response = await fetch(`${url}/api/v1/events`, { headers, signal: stop.signal });
  const events: ServerEvent[] = [];
  const waiting = new Set<() => void>();
  const read = async (): Promise<void> => {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      const parts = text.split('\n\n');
      text = parts.pop() ?? '';
      events.push(...parts.flatMap(parse));
      for (const look of waiting) look();
    }
  };
  return {
    status: response.status,
    headers: response.headers,
    events,
    ended: read().catch(() => {}),
    close: () => stop.abort(),
    until: (fits, after = 0) =>
      new Promise((resolve, reject) => {
        const told = (): string => events.map((one) => `${one.event} ${JSON.stringify(one.data)}`).join('\n');
        const timer = setTimeout(
          () => reject(new assert.AssertionError({ message: `no such event among:\n${told()}` })),
          patienceMs,
        );
        const look = (): void => {
          const found = events.slice(after).find(fits);
          if (found === undefined) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
  };
}

/** Comments are no events. */
function parse(text: string): readonly ServerEvent[] {
  const fields = new Map(
    text
      .split('\n')
      .filter((line) => !line.startsWith(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  );
  const event = fields.get('event');
  if (event === undefined) return [];
  return [{ event, data: JSON.parse(fields.get('data') ?? '{}') as never, id: fields.get('id') ?? '' }];
}
