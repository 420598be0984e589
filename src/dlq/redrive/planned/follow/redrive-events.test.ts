import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { AppError } from '../../../../kernel/errors.ts';
import { createRedriveEvents, type EventLimits, type RedriveProgress } from './redrive-events.ts';

type View = RedriveProgress & Readonly<{ published: number }>;

const running = (published: number): View => ({ state: 'running', receipt: null, published });
const finished: View = { state: 'finished', receipt: { sha256: '' }, published: 9 };

function eventsOf(views: readonly (View | Error)[], limits: Partial<EventLimits> = {}) {
  const stop = new AbortController();
  let reads = 0;
  const events = createRedriveEvents({
    stopping: stop.signal,
    limits: { everyMs: 1, ...limits },
    async read() {
      const view = views[Math.min(reads, views.length - 1)] ?? finished;
      reads += 1;
      if (view instanceof Error) throw view;
      return view;
    },
  });
  return { ...events, stop: () => stop.abort(), reads: () => reads };
}

const namesIn = (stream: string): readonly string[] =>
  stream
    .split('\n')
    .filter((line) => line.startsWith('event: '))
    .map((line) => line.slice(7));

test('a stream shows every change, and ends with the redrive', async () => {
  const { open } = eventsOf([
    running(1),
    running(1),
    new Error('the database is away'),
    running(5),
    finished,
  ]);
  const stream = await text(await open('a'));
  assert.deepEqual(namesIn(stream), ['progress', 'progress', 'progress', 'end']);
  assert.match(stream, /event: end\ndata: \{"state":"finished",.*"published":9\}\n\n$/);
});

test('a redrive that has ended is one event', async () => {
  assert.deepEqual(namesIn(await text(await eventsOf([finished]).open('a'))), ['end']);
});

test('streams of one redrive share one reader, which ends with the last of them', async () => {
  const events = eventsOf([running(0)], { everyMs: 3_600_000 });
  const streams = await Promise.all([1, 2, 3].map(() => events.open('a')));
  assert.equal(events.reads(), 3);
  for (const stream of streams) {
    const closed = once(stream, 'close');
    stream.destroy();
    await closed;
  }
  // A new stream gets a reader of its own, and a slot.
  const again = await events.open('a');
  events.stop();
  await text(again);
});

test('streams are bounded, and one that closes makes room', async () => {
  const { open } = eventsOf([running(0)], { maxStreams: 1 });
  const first = await open('a');
  await assert.rejects(open('b'), { code: 'SYS_DLQ_TOO_MANY_STREAMS' });
  const closed = once(first, 'close');
  first.destroy();
  await closed;
  (await open('b')).destroy();
});

test('an unknown redrive takes no slot', async () => {
  const missing = new AppError('SYS_DLQ_NOT_FOUND', 'not_found', 'redrive not found');
  const { open } = eventsOf([missing, missing, finished], { maxStreams: 1 });
  await assert.rejects(open('a'), missing);
  await assert.rejects(open('a'), missing);
  await text(await open('a'));
});

test('a client that reads nothing is disconnected, with one event in memory', async () => {
  let count = 0;
  const { open } = createRedriveEvents({
    stopping: new AbortController().signal,
    limits: { everyMs: 1, cutAfterMs: 20, heartbeatMs: 20 },
    read: async () => running((count += 1)),
  });
  const stream: Readable = await open('a');
  const closed = once(stream, 'close');
  // Takes the first event, and no other.
  stream.once('readable', () => {});
  await closed;
  assert.ok(count > 2);
  assert.ok(stream.readableLength < 1000, `${stream.readableLength} bytes`);
});

test('while nothing changes there are comments', async () => {
  const events = eventsOf([running(0)], { heartbeatMs: 5 });
  const stream = await events.open('a');
  let seen = '';
  for await (const chunk of stream) {
    seen += String(chunk);
    if (seen.includes(': keep-alive\n\n')) break;
  }
});

test('a stop of the server ends the streams', async () => {
  const events = eventsOf([running(0)]);
  const stream = await events.open('a');
  const ended = text(stream);
  events.stop();
  assert.deepEqual(namesIn(await ended), ['progress']);
});
