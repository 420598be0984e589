import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { RedriveState } from '../../src/dlq/domain/redrive.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertDocumented, operations, type Placed } from '../support/openapi-document.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { storeMessage } from '../support/stored-message.ts';

/** Sends the example of every operation to a server that has the item that it is about. No worker runs. */

type Fields = Readonly<Record<string, unknown>>;
/** What a request has in place of its example. */
type Given = Readonly<{ path?: Readonly<Record<string, string>>; body?: Fields; key?: string }>;

/** The examples of these do not succeed: nothing was read, no saga is stuck, there are no keys, logins and policies, the tag is another, nobody is logged in. */
const refused: Readonly<Record<string, number>> = {
  forgetSource: 404,
  seekSource: 404,
  verifySource: 404,
  patchRedrive: 412,
  approveRedrive: 403,
  getRetryPolicy: 404,
  pauseRetryPolicy: 404,
  resumeRetryPolicy: 404,
  retryStep: 409,
  skipStep: 409,
  resolveStep: 409,
  createKey: 422,
  revokeKey: 404,
  getLoginConfig: 404,
};

/** What changes nothing, or is in the history of its item only because programs do it all the time. */
const unrecorded: Readonly<Record<string, string>> = {
  enqueueJob: 'programs',
  claimJobs: 'programs',
  completeJob: 'programs',
  failJob: 'programs',
  heartbeatJob: 'programs',
  releaseJob: 'programs',
  addOrder: 'programs',
  startSaga: 'programs',
  verifyAudit: 'changes nothing',
  retrySagas: 'no saga is stuck here',
  validateMessageEdit: 'it changes nothing',
  logOut: 'there is no session here',
};

let system: TestSystem;
let routes: Awaited<ReturnType<TestSystem['routes']>>;
before(async () => {
  system = await startTestSystem({
    env: {
      ROLES: 'api',
      OUTBOX_DESTINATIONS: JSON.stringify({
        broker: {
          type: 'http',
          url: 'http://127.0.0.1:9/orders',
          idempotency: 'enforced',
          dedup_window: '24h',
        },
      }),
      SERVICES: JSON.stringify({ inventory: { type: 'http', base_url: 'http://127.0.0.1:9' } }),
    },
  });
  routes = await system.routes();
});
after(() => system.drop());

async function post(path: string, body: Fields, key?: string): Promise<Fields> {
  const headers = key === undefined ? {} : { 'idempotency-key': key };
  const answer = await system.api.post<Fields>(`/api/v1${path}`, body, headers);
  assert.ok(answer.status < 300, answer.text);
  return answer.body;
}

const storeMessageFor = async (status: 'PENDING' | 'DEAD'): Promise<Given> => ({
  path: { id: await storeMessage(system.db, { status }) },
});

/** Its ETag is that of the example. */
const storeTagged = async (): Promise<Given> => {
  const stored = await storeMessageFor('PENDING');
  await system.db.query(sql`UPDATE dlq.dlq_messages SET lease_epoch = 42 WHERE id = ${stored.path?.['id']}`);
  return stored;
};

const storeFailure = async (): Promise<Given> => {
  const fingerprint = 'v2:3b0e6c1f9a7d42588c1e0f6a5d9b7c34';
  const { path: { id } = {} } = await storeMessageFor('PENDING');
  await system.db.query(sql`UPDATE dlq.dlq_messages SET fingerprint = ${fingerprint} WHERE id = ${id}`);
  return { path: { fingerprint } };
};

const findEntry = async (): Promise<Readonly<{ path: Readonly<{ id: string }> }>> => {
  await storeFailure();
  const { body } = await system.api.get<Readonly<{ entries: readonly Readonly<{ id: string }>[] }>>(
    '/api/v1/inbox?kind=messages&limit=1',
  );
  return { path: { id: body.entries[0]?.id ?? '' } };
};

/** Whoever the examples name. */
const byExample = { 'x-actor': 'alice@example.com' };

const addNote = async (): Promise<Given> => {
  const { path } = await findEntry();
  const note = randomUUID();
  await system.api.post(
    `/api/v1/inbox/${path.id}/notes`,
    { note_id: note, text: 'fixed by noon' },
    byExample,
  );
  return { path: { ...path, note } };
};

const addOwnView = async (): Promise<Given> => {
  const { body } = await system.api.post<Readonly<{ id: string }>>(
    '/api/v1/views',
    {
      name: `view ${randomUUID()}`,
      url: '/jobs/list?q=status:failed',
    },
    byExample,
  );
  return { path: { id: body.id } };
};

/** Another process works on it, so its state stays. */
const addRedrive = async (state: RedriveState): Promise<Given> => {
  const id = randomUUID();
  await system.db.query(sql`
    INSERT INTO dlq.redrives (id, state, filter, options, actor, reason, lease_until)
    VALUES (${id}, ${state}, '{}', '{"rate_per_second": null, "order": "key"}', 'alice', 'fixed',
            clock_timestamp() + interval '1 hour')`);
  return { path: { id } };
};

const addJob = async (): Promise<Given> => {
  const { job_id } = await post('/jobs', { queue: 'mail', payload: {} });
  return { path: { id: String(job_id) } };
};

const addDeadJob = async (): Promise<Given> => {
  const given = await claimJob();
  await post(`/jobs/${given.path?.['id']}/fail`, { ...given.body, error: 'no such user', retryable: false });
  return given.path === undefined ? {} : { path: given.path };
};

const claimJob = async (): Promise<Given> => {
  await post('/jobs', { queue: 'mail', payload: {}, priority: 100 });
  const { jobs } = await post('/jobs/queues/mail/claim', { worker: 'mailer-1' });
  const [job] = jobs as readonly Readonly<{ job_id: string; epoch: number }>[];
  assert.ok(job);
  return { path: { id: job.job_id }, body: { epoch: job.epoch } };
};

const addOrder = async (key: string): Promise<Given> => {
  const body = { destination: 'broker', idempotency_key: key, request: {} };
  const { id } = await post('/outbox/orders', body, key);
  return { path: { id: String(id) } };
};

const addDeadOrder = async (key: string): Promise<Given> => {
  const given = await addOrder(key);
  const id = BigInt(given.path?.['id'] ?? 0);
  await system.db.query(sql`
    UPDATE outbox.outbox_orders SET status = 'dead', last_error = 'HTTP_400: no such symbol' WHERE id = ${id}`);
  return given;
};

const startSaga = async (): Promise<Given> => {
  const { saga_id } = await post('/sagas', { workflow_name: 'buy', payload: { sku: 'shoe' } });
  return { path: { saga_id: String(saga_id) } };
};

/** What each operation needs to exist; an operation that is not named needs nothing. */
const given: Readonly<Record<string, () => Promise<Given>>> = {
  getMessage: () => storeMessageFor('PENDING'),
  deleteMessage: () => storeMessageFor('DEAD'),
  diffMessageVersions: () => storeMessageFor('PENDING'),
  downloadMessageValue: () => storeMessageFor('PENDING'),
  editMessage: storeTagged,
  getMessageVersion: () => storeMessageFor('PENDING'),
  validateMessageEdit: () => storeMessageFor('PENDING'),
  listMessageVersions: () => storeMessageFor('PENDING'),
  markMessageDead: () => storeMessageFor('PENDING'),
  getMessageHistory: () => storeMessageFor('PENDING'),
  getRawMessage: () => storeMessageFor('PENDING'),
  revealMessage: () => storeMessageFor('PENDING'),
  reopenMessage: () => storeMessageFor('DEAD'),
  retryMessage: () => storeMessageFor('PENDING'),
  routeMessage: () => storeMessageFor('DEAD'),
  getGroup: storeFailure,
  getInboxEntry: findEntry,
  assignInboxEntry: findEntry,
  snoozeInboxEntry: findEntry,
  finishInboxEntry: findEntry,
  addInboxNote: findEntry,
  deleteInboxNote: addNote,
  changeView: async () => ({ ...(await addOwnView()), body: { name: 'renamed' } }),
  deleteView: addOwnView,
  getRedrive: () => addRedrive('planned'),
  listRedriveItems: () => addRedrive('planned'),
  patchRedrive: () => addRedrive('planned'),
  followRedrive: () => addRedrive('expired'),
  approveRedrive: () => addRedrive('awaiting_approval'),
  startRedrive: () => addRedrive('planned'),
  pauseRedrive: () => addRedrive('running'),
  resumeRedrive: () => addRedrive('paused'),
  cancelRedrive: () => addRedrive('running'),
  getJob: addJob,
  revealJob: addJob,
  cancelJob: addJob,
  requeueJob: addDeadJob,
  requeueJobs: async () => (await addDeadJob(), { body: { error: 'no such user' } }),
  discardJob: addDeadJob,
  completeJob: claimJob,
  failJob: claimJob,
  heartbeatJob: claimJob,
  releaseJob: claimJob,
  pauseQueue: addJob,
  getLedgerEntry: async () => ({ path: { key: 'ledger-0001' }, ...(await addOrder('ledger-0001'), {}) }),
  getOrder: () => addOrder('order-get-1'),
  revealOrder: () => addOrder('order-reveal-1'),
  cancelOrder: () => addOrder('order-cancel-1'),
  skipOrder: () => addDeadOrder('order-skip-1'),
  supersedeOrder: async () => ({
    ...(await addDeadOrder('order-dead-1')),
    body: { idempotency_key: 'order-corrected-1' },
    key: 'order-corrected-1',
  }),
  getSaga: startSaga,
  revealSaga: startSaga,
  cancelSaga: startSaga,
  compensateSaga: startSaga,
  retryStep: startSaga,
  skipStep: startSaga,
  resolveStep: startSaga,
};

/** Workflows are registered before sagas start. */
const ordered = operations.toSorted((a, b) => rank(a) - rank(b));

function rank({ operation }: Placed): number {
  return operation.operationId === 'registerWorkflow' ? 0 : 1;
}

for (const placed of ordered) {
  const { operationId = '' } = placed.operation;
  test(`the example of ${operationId} gets a documented answer`, async () => {
    const answer = await send(placed, (await given[operationId]?.()) ?? {});
    assertDocumented(placed, answer.status, answer.body, operationId);
    const isExpected = operationId in refused ? answer.status === refused[operationId] : answer.status < 300;
    assert.ok(isExpected, `${answer.status} ${answer.text}`);
    const requestId = answer.headers.get('x-request-id') ?? '';
    assert.match(requestId, /^req_/);
    if (placed.method !== 'get' && answer.status < 300) await assertRecorded(placed, requestId);
  });
}

type Recorded = Readonly<{ actor: string; action: string; outcome: string; resource: string; items: number }>;

/** Acts that everybody may do for themselves. */
const byOwn: Readonly<Record<string, string>> = {
  addView: 'console:views:keep',
  changeView: 'console:views:change',
  deleteView: 'console:views:change',
};

/** Every act of a person is in the audit log: who, by which permission, on what, and with which outcome. */
async function assertRecorded({ method, path, operation }: Placed, requestId: string): Promise<void> {
  const { operationId = '' } = operation;
  const events = await system.db.query<Recorded>(sql`
    SELECT actor_id AS actor, action, outcome, resource, item_count AS items FROM audit.events
    WHERE request_id = ${requestId} ORDER BY seq`);
  if (operationId in unrecorded) return assert.deepEqual(events, [], operationId);
  const url = path.replaceAll(/\{(\w+)\}/g, ':$1');
  const route = routes.find((one) => one.method === method.toUpperCase() && one.path === url);
  assert.ok(route, `${method} ${url}`);
  const expected = byOwn[operationId] ?? (typeof route.access === 'object' ? route.access.permission : null);
  assert.ok(events.length > 0, `${operationId} is not in the audit log`);
  for (const { actor, action, resource } of events) {
    assert.equal(
      actor,
      operation.parameters?.find(({ name }) => name === 'x-actor')?.example ?? 'anonymous',
      operationId,
    );
    assert.equal(action, expected, operationId);
    assert.match(resource, /^(dlq|outbox|jobs|saga|access|console)\/[a-z-]+(\/.|$)/, operationId);
  }
  assert.equal(events.at(-1)?.outcome, 'success', operationId);
}

/** A parameter as it is written in a URL or a header. */
function textOf(example: unknown): string {
  return typeof example === 'string' ? example : JSON.stringify(example);
}

/** Sends all parameters that have an example. */
async function send({ method, path, operation }: Placed, { path: ids = {}, body, key }: Given) {
  let url = path;
  const query = new URLSearchParams();
  const headers: Record<string, string> = {};
  for (const { name, in: place, example } of operation.parameters ?? []) {
    if (place === 'path') url = url.replace(`{${name}}`, encodeURIComponent(ids[name] ?? textOf(example)));
    else if (example === undefined) continue;
    else if (place === 'query') query.set(name, textOf(example));
    else headers[name] = textOf(example);
  }
  if (key !== undefined) headers['idempotency-key'] = key;
  const example = operation.requestBody?.content['application/json']?.example as Fields | undefined;
  const text = example === undefined ? undefined : JSON.stringify({ ...example, ...body });
  if (text !== undefined) headers['content-type'] = 'application/json';
  const target = query.size === 0 ? url : `${url}?${query.toString()}`;
  return system.api.raw({
    method: method.toUpperCase(),
    path: target,
    headers,
    ...(text === undefined ? {} : { body: text }),
    ...(operation.operationId === 'followChanges' ? { until: /^event: beat$/m } : {}),
  });
}

test('a request without any of its required fields gets a documented refusal', async () => {
  for (const placed of operations) {
    if (placed.operation.requestBody?.required !== true) continue;
    const answer = await system.api.raw({
      method: placed.method.toUpperCase(),
      path: placed.path.replaceAll(/\{\w+\}/g, '0'),
      headers: { 'content-type': 'application/json', 'idempotency-key': 'order-2026-1' },
      body: '{}',
    });
    assertDocumented(placed, answer.status, answer.body, placed.operation.operationId ?? '');
    assert.equal(answer.status, 400, answer.text);
  }
});
