import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { noMasks } from '../../src/kernel/protect/protection.ts';
import { createItemLines } from '../../src/dlq/redrive/planned/follow/item-lines.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { assertError } from '../support/api-client.ts';
import { commandRedrive, itemsOf, planRedrive, type ItemView } from '../support/redrives.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { storeRecords } from '../support/stored-message.ts';

/** A redrive is followed by events, and its items are streamed as lines. */

const topic = 'orders.v1';
const root = '/api/v1/dlq/redrives';

let system: TestSystem;
let another: TestSystem;
before(async () => {
  system = await startTestSystem({ kafka: 'local' });
  another = await startTestSystem({ kafka: 'local', database: system.database });
  for (const one of [system, another]) await one.broker?.createTopic(topic, 1);
});
after(async () => {
  await another.drop();
  await system.drop();
});

const plan = async (count: number, rate: number | null = null): Promise<string> => {
  await storeRecords(
    system.db,
    topic,
    Array.from({ length: count }, (_, i) => ({ key: `k${i}`, value: `${i}` })),
  );
  return (await planRedrive(system.api, { rate_per_second: rate })).id;
};

const follow = async ({ url }: TestSystem, id: string): Promise<Response> =>
  fetch(`${url}${root}/${id}/events`);

type Event = Readonly<{ name: string; data: Readonly<{ state: string; counts: Record<string, number> }> }>;

const eventsIn = (stream: string): readonly Event[] =>
  stream
    .split('\n\n')
    .filter((part) => part.startsWith('event: '))
    .map((part) => {
      const [, name = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(part) ?? [];
      return { name, data: JSON.parse(data) as Event['data'] };
    });

test('every replica sends the events of a redrive until it ends, whoever runs it', async () => {
  const id = await plan(60, 30);
  const streams = await Promise.all([system, another].map((one) => follow(one, id)));
  await commandRedrive(system.api, id, 'start');
  for (const stream of streams) {
    assert.equal(stream.status, 200);
    assert.equal(stream.headers.get('content-type'), 'text/event-stream');
    const events = eventsIn(await stream.text());
    assert.deepEqual(events[0]?.data.state, 'planned');
    assert.ok(events.some(({ data }) => data.state === 'running'));
    const last = events.at(-1);
    assert.deepEqual([last?.name, last?.data.state, last?.data.counts['published']], ['end', 'finished', 60]);
  }
  const [only, ...others] = eventsIn(await (await follow(another, id)).text());
  assert.deepEqual([only?.name, others], ['end', []]);
});

test('an unknown redrive has no events', async () => {
  const { url } = system;
  assert.equal((await fetch(`${url}${root}/${randomUUID()}/events`)).status, 404);
  assertError(await system.api.get(`${root}/x/events`), 400);
});

test('a server that stops ends its streams', async () => {
  const stopping = await startTestSystem({
    kafka: 'local',
    database: system.database,
    env: { ROLES: 'api' },
  });
  const stream = await follow(stopping, await plan(1));
  const ended = stream.text();
  await stopping.stop();
  assert.deepEqual(
    eventsIn(await ended).map(({ name }) => name),
    ['progress'],
  );
});

test('items are streamed as lines to a client that accepts them', async () => {
  const id = await plan(2500);
  const lines = async (path: string, accept: string): Promise<Response> =>
    fetch(`${system.url}${root}/${id}/items${path}`, { headers: { accept } });
  const answer = await lines('', 'application/x-ndjson');
  assert.equal(answer.headers.get('content-type'), 'application/x-ndjson');
  const items = (await answer.text()).trimEnd().split('\n');
  assert.deepEqual(
    items.map((line) => JSON.parse(line) as ItemView),
    await itemsOf(system.api, id),
  );
  assert.equal(await (await lines('?outcome=published', 'application/x-ndjson')).text(), '');
  for (const accept of ['application/json', '*/*', 'application/x-ndjson;q=0'])
    assert.match((await lines('', accept)).headers.get('content-type') ?? '', /^application\/json/);
  assert.equal(
    (
      await fetch(`${system.url}${root}/${id}/items`, {
        method: 'HEAD',
        headers: { accept: 'application/x-ndjson' },
      })
    ).status,
    200,
  );
});

test('items are downloaded as a file', async () => {
  const id = await plan(3);
  const url = `${system.url}${root}/${id}/items`;
  const answer = await fetch(`${url}?format=ndjson&outcome=waiting`);
  assert.equal(answer.headers.get('content-type'), 'application/x-ndjson');
  assert.equal(answer.headers.get('content-disposition'), `attachment; filename="redrive-${id}.ndjson"`);
  const items = await itemsOf(system.api, id);
  assert.equal((await answer.text()).trimEnd().split('\n').length, items.length);

  const page = await fetch(`${url}?format=json`, { headers: { accept: 'application/x-ndjson' } });
  assert.match(page.headers.get('content-type') ?? '', /^application\/json/);
  assert.equal(page.headers.get('content-disposition'), null);
  assert.equal((await fetch(`${url}?format=csv`)).status, 400);
});

/** Counts the pages that are read. */
function counting(db: Database): Readonly<{ db: Database; pages: () => number }> {
  let pages = 0;
  return {
    pages: () => pages,
    db: {
      ...db,
      query(statement) {
        if (statement.text.includes('dlq.redrive_items')) pages += 1;
        return db.query(statement);
      },
    },
  };
}

test('no more items are read than the client takes, and one that takes none is disconnected', async () => {
  const id = await plan(200);
  const { db, pages } = counting(system.db);
  const readable = await createItemLines(db, noMasks, { pageRows: 10, cutAfterMs: 50 }).open({
    redriveId: id,
  });
  const first = await new Promise<string>(
    (resolve) => void readable.once('readable', () => resolve(String(readable.read()))),
  );
  assert.equal(first.trimEnd().split('\n').length, 10);
  await new Promise((resolve) => readable.once('close', resolve));
  assert.ok(pages() <= 3, `${pages()} pages`);
});

test('streams of lines are bounded, and a client that leaves makes room', async () => {
  const id = await plan(1);
  const { open } = createItemLines(system.db, noMasks, { maxStreams: 1 });
  const first = await open({ redriveId: id });
  await assert.rejects(open({ redriveId: id }), { code: 'SYS_DLQ_TOO_MANY_STREAMS' });
  const closed = new Promise((resolve) => first.once('close', resolve));
  first.destroy();
  await closed;
  assert.match(await text(await open({ redriveId: id })), /"position":1,/);
});
