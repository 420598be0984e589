import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Broker } from '../../../src/platform/broker/port.ts';
import type { ApiClient } from '../api-client.ts';
import { eventually } from '../eventually.ts';

/** Uses every route of the API that touches the database, and waits for what the workers make of it. */
export type FlowDeps = Readonly<{ api: ApiClient; broker: Broker }>;

type Fields = Readonly<Record<string, unknown>>;
type Post = (path: string, body?: Fields, headers?: Readonly<Record<string, string>>) => Promise<Fields>;
type Get = (path: string) => Promise<Fields>;

/** A name that no other run on this database has. */
const fresh = (name: string): string => `${name}-${randomUUID().slice(0, 8)}`;

export async function runHttpFlows({ api, broker }: FlowDeps): Promise<void> {
  const expectOk = (path: string, { status, text, body }: Awaited<ReturnType<ApiClient['get']>>): Fields => {
    assert.ok(status >= 200 && status < 300, `${path}: ${status} ${text}`);
    return (body ?? {}) as Fields;
  };
  const get: Get = async (path) => expectOk(path, await api.get(path));
  const post: Post = async (path, body, headers) => expectOk(path, await api.post(path, body, headers));
  await useDlq({ get, post, broker, remove: async (path) => expectOk(path, await api.delete(path)) });
  await useEdits({ api, get, post, remove: async (path) => expectOk(path, await api.delete(path)) });
  await useOutbox(get, post);
  await useJobs(get, post);
  await useSagas(get, post);
  for (const path of ['/metrics', '/healthz']) expectOk(path, await api.get(path));
}

async function useDlq({
  get,
  post,
  broker,
  remove,
}: Readonly<{ get: Get; post: Post; broker: Broker; remove: Get }>): Promise<void> {
  const root = '/api/v1/dlq';
  const topic = fresh('orders');
  for (const name of [topic, `${topic}.dlq`]) await broker.createTopic(name, 1);
  const values = ['{"n":1}', 'not json', '{"n":3}', '{"n":4}'];
  await broker.publish(
    values.map((value) => ({ topic: `${topic}.dlq`, key: null, value: Buffer.from(value), headers: [] })),
    { timeoutMs: 5000 },
  );
  const messages = await eventually(async () => {
    const { messages: found } = (await get(`${root}/${topic}`)) as { messages: readonly { id: string }[] };
    assert.equal(found.length, values.length);
    return found;
  });
  const [first, second, third] = messages.map(({ id }) => `${root}/messages/${id}`);
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  await post(`${first}/retry`);
  await post(`${second}/dead`, { reason: 'tried' });
  await post(`${second}/reopen`, { reason: 'tried' });
  await remove(third);
  await useRedrives(get, post, topic);
  await usePolicies(get, post, broker);
  await post(`${root}/${topic}/retry-all`);
  for (const path of [first, `${first}/history`, `${first}/raw`]) await get(path);
  for (const path of ['', '/messages', '/sources', '/accounting']) await get(`${root}${path}`);
  await post(`${root}/sources/${topic}.dlq/0/seek`, { earliest: true, reason: 'tried' });
}

async function useEdits({
  api,
  get,
  post,
  remove,
}: Readonly<{ api: ApiClient; get: Get; post: Post; remove: Get }>): Promise<void> {
  const { messages } = (await get('/api/v1/dlq/messages?status=RESOLVED&page_size=1')) as {
    messages: readonly { id: string }[];
  };
  const path = `/api/v1/dlq/messages/${messages[0]?.id}`;
  await post(`${path}/reopen`, { reason: 'tried' });
  const tag = (await api.get(path)).headers.get('etag') ?? '';
  await post(`${path}/edit`, { value: '{"n":5}', reason: 'tried' }, { 'if-match': tag });
  for (const what of ['versions', 'versions/1', 'diff', 'raw?version=0']) await get(`${path}/${what}`);
  await remove(path);
}

async function useRedrives(get: Get, post: Post, topic: string): Promise<void> {
  const root = '/api/v1/dlq/redrives';
  const becomes = (path: string, state: string): Promise<void> =>
    eventually(async () => {
      const redrive = await get(path);
      assert.equal(redrive['state'], state);
      assert.ok(state === 'planned' || redrive['receipt'] !== null);
    });
  const plan = async (): Promise<string> => {
    const { id } = await post(root, { filter: { topic }, reason: 'tried', rate_per_second: 1 });
    await becomes(`${root}/${String(id)}`, 'planned');
    return `${root}/${String(id)}`;
  };
  const [run, cancelled] = [await plan(), await plan()];
  for (const command of ['start', 'pause', 'resume']) await post(`${run}/${command}`);
  await post(`${cancelled}/cancel`);
  await becomes(run, 'finished');
  await becomes(cancelled, 'cancelled');
  for (const path of [root, `${run}/items`]) await get(path);
}

async function usePolicies(get: Get, post: Post, broker: Broker): Promise<void> {
  const root = '/api/v1/dlq';
  const topic = fresh('automatic');
  for (const name of [topic, `${topic}.dlq`]) await broker.createTopic(name, 1);
  const record = { topic: `${topic}.dlq`, key: null, value: Buffer.from('1'), headers: [] };
  await broker.publish([record], { timeoutMs: 5000 });
  await eventually(async () => {
    const { messages } = (await get(`${root}/${topic}`)) as { messages: readonly { status: string }[] };
    assert.equal(messages[0]?.status, 'RESOLVED');
  });
  for (const command of ['pause', 'resume'])
    await post(`${root}/policies/soon/${command}`, { reason: 'tried' });
  for (const path of ['policies', 'policies/soon', 'redrives?policy=soon']) await get(`${root}/${path}`);
}

async function useOutbox(get: Get, post: Post): Promise<void> {
  const root = '/api/v1/outbox';
  const order = async (destination: string, more: Fields = {}): Promise<string> => {
    const key = fresh(destination);
    const body = { destination, idempotency_key: key, request: { symbol: 'USDJPY' }, ...more };
    const { id } = await post(`${root}/orders`, body, { 'idempotency-key': key });
    return `${root}/orders/${String(id)}`;
  };
  const becomes = (path: string, status: string): Promise<void> =>
    eventually(async () => assert.equal(((await get(path)) as { status: string }).status, status));
  const [sent, keyed] = [await order('broker'), await order('broker', { ordering_key: fresh('account') })];
  for (const path of [sent, keyed]) await becomes(path, 'sent');
  const [skipped, replaced] = [await order('picky'), await order('picky')];
  for (const path of [skipped, replaced]) await becomes(path, 'dead');
  await post(`${skipped}/skip`, { reason: 'tried' });
  const corrected = fresh('corrected');
  await post(
    `${replaced}/supersede`,
    { idempotency_key: corrected, request: { symbol: 'EURJPY' }, reason: 'tried' },
    { 'idempotency-key': corrected },
  );
  const { idempotency_key: key } = (await get(sent)) as { idempotency_key: string };
  for (const path of ['/orders', '/orders?needs_attention=true', '/destinations', `/ledger/${key}`])
    await get(`${root}${path}`);
}

async function useJobs(get: Get, post: Post): Promise<void> {
  const root = '/api/v1/jobs';
  const job = async (queue: string): Promise<string> => {
    const { job_id } = await post(root, { queue, payload: { n: 1 }, dedupe_key: fresh('job') });
    return `${root}/${String(job_id)}`;
  };
  const queue = fresh('pulled');
  const claim = async (from: string): Promise<number> => {
    const claimed = await post(`${root}/queues/${from}/claim`, { worker: fresh('worker'), wait_seconds: 5 });
    return (claimed as { jobs: readonly { epoch: number }[] }).jobs[0]?.epoch ?? 0;
  };
  const completed = await job(queue);
  const epoch = await claim(queue);
  await post(`${completed}/heartbeat`, { epoch, progress: { done: 1 } });
  await post(`${completed}/release`, { epoch });
  await post(`${completed}/complete`, { epoch: await claim(queue), result: { ok: true } });
  const limited = await job('limited');
  await post(`${limited}/complete`, { epoch: await claim('limited') });
  const dead = await job(queue);
  const fail = async (): Promise<Fields> =>
    post(`${dead}/fail`, { epoch: await claim(queue), error: 'tried', retryable: false });
  await fail();
  await post(`${dead}/requeue`, { reason: 'tried' });
  await fail();
  await post(`${root}/requeue`, { queue, preview: true });
  await post(`${root}/requeue`, { queue, reason: 'tried' });
  await fail();
  await post(`${dead}/discard`, { reason: 'tried' });
  await post(`${await job(queue)}/cancel`, { reason: 'tried' });
  for (const act of ['pause', 'resume']) await post(`${root}/queues/${queue}/${act}`, { reason: 'tried' });
  const pushed = await job('pushed');
  await eventually(async () => assert.equal((await get(pushed))['status'], 'completed'));
  for (const path of ['', '/dead', '/queues']) await get(`${root}${path}`);
}

async function useSagas(get: Get, post: Post): Promise<void> {
  const step = (name: string, more: Fields = {}): Fields => ({
    name,
    service: 'shop',
    method: `POST /${name}`,
    compensate: `POST /undo-${name}`,
    retry: { max_attempts: 1, backoff: 'fixed', initial_interval_ms: 5 },
    ...more,
  });
  const start = async (steps: readonly Fields[]): Promise<string> => {
    const name = fresh('order');
    await post('/api/v1/workflows', { workflow_yaml: JSON.stringify({ name, steps }) });
    await get(`/api/v1/workflows/${name}`);
    const { saga_id } = await post(
      '/api/v1/sagas',
      { workflow_name: name, payload: { sku: 'shoe' } },
      { 'idempotency-key': fresh('start') },
    );
    return `/api/v1/sagas/${String(saga_id)}`;
  };
  type Told = Readonly<{ saga: Readonly<{ status: string; needs_attention: boolean }> }>;
  const until = (path: string, isThere: (saga: Told['saga']) => boolean): Promise<void> =>
    eventually(async () => {
      const { saga } = (await get(path)) as Told;
      assert.ok(isThere(saga), JSON.stringify(saga));
    });
  await until(await start([step('reserve'), step('charge')]), ({ status }) => status === 'COMPLETED');
  const undone = await start([step('reserve'), step('ship', { method: 'POST /refuse' })]);
  await until(undone, ({ status }) => status === 'FAILED');
  const stuck = await start([
    step('reserve', { compensate: 'POST /undo/refuse' }),
    step('ship', { method: 'POST /refuse' }),
  ]);
  await until(stuck, ({ needs_attention }) => needs_attention);
  await post(`${stuck}/steps/reserve/retry`, { reason: 'tried' });
  await until(stuck, ({ needs_attention }) => needs_attention);
  for (const path of ['/api/v1/sagas', '/api/v1/sagas?needs_attention=true', '/api/v1/workflows'])
    await get(path);
}
