import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { assertError, createApiClient, type ApiClient } from '../support/api-client.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { audience, startIssuer, type Issuer } from '../support/issuer.ts';
import { startServerProcess, type ServerProcess } from '../support/redrive-process.ts';
import { commandRedrive, endedRedrive, redriveInState, showRedrive } from '../support/redrives.ts';
import { storeMessage } from '../support/stored-message.ts';

/**
 * Two server processes on one database, whose configurations differ while bindings are changed: each decides by its
 * own, and a redrive runs by the bindings of the process that has it.
 */
let issuer: Issuer;
let database: TestDatabase;
let folder: string;
const servers: ServerProcess[] = [];
before(async () => {
  issuer = await startIssuer();
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'redrive-bindings-'));
});
after(async () => {
  await Promise.all(servers.map((server) => server.kill()));
  await database.drop();
  await issuer.stop();
  await rm(folder, { recursive: true });
});

const admins = { role: 'sys_admin', subjects: ['role:admins'] };
const onCall = { role: 'sys_operator', subjects: ['role:oncall'] };

async function start(name: string, bindings: readonly object[]): Promise<ServerProcess> {
  const file = join(folder, `${name}.yaml`);
  const auth = { jwt: { issuer: issuer.url, audience }, api_keys: { enabled: true }, bindings };
  await writeFile(file, JSON.stringify({ auth, kafka: { enabled: false }, database: { max_open_conns: 8 } }));
  const server = await startServerProcess({ DATABASE_URL: database.url, CONFIG_PATH: file });
  servers.push(server);
  return server;
}

const as = async ({ url }: ServerProcess, sub: string, role: string): Promise<ApiClient> =>
  createApiClient(url, { authorization: `Bearer ${await issuer.sign({ sub, roles: [role] })}` });

test('a right that one replica no longer gives pauses the redrive when that replica takes it over', async () => {
  const old = await start('old', [admins, onCall]);
  const ann = await as(old, 'ann', 'oncall');
  for (let i = 0; i < 4; i += 1) await storeMessage(database.db, { topic: 'orders.v1' });
  const planned = await ann.post<{ id: string }>('/api/v1/dlq/redrives', {
    filter: {},
    reason: 'the consumer was fixed',
    rate_per_second: 0.2,
  });
  const { id } = planned.body;
  await redriveInState(ann, id, 'planned');
  await commandRedrive(ann, id, 'start');
  await redriveInState(ann, id, 'running');
  const admin = await as(old, 'bob', 'admins');
  const made = await admin.post<{ key: string }>('/api/v1/keys', { name: 'of bob', role: 'sys_operator' });
  const keyAt = ({ url }: ServerProcess): ApiClient =>
    createApiClient(url, { authorization: `Bearer ${made.body.key}` });

  // One of two replicas was restarted without the binding: each answers by its own configuration.
  const changed = await start('changed', [admins]);
  const annAtChanged = await as(changed, 'ann', 'oncall');
  assertError(await annAtChanged.get('/api/v1/dlq'), 403, 'SYS_AUTH_PERMISSION_DENIED');
  assert.equal((await ann.get('/api/v1/dlq')).status, 200);
  assert.equal((await keyAt(changed).get('/api/v1/dlq')).status, 200);
  assert.equal((await showRedrive(ann, id)).state, 'running');

  // The last replica with the old bindings ends: the other one takes the redrive over, and pauses it.
  assert.equal((await old.stop()).code, 0);
  const adminAtChanged = await as(changed, 'bob', 'admins');
  const paused = await redriveInState(adminAtChanged, id, 'paused');
  assert.match(paused.state_reason ?? '', /ann does not have the permission dlq:redrives:start/);
  assert.deepEqual([paused.counts['failed'], paused.counts['skipped']], [0, 0]);
  assert.ok((paused.counts['waiting'] ?? 0) > 0);

  // It stays paused when a replica with the old bindings returns: somebody has to resume it.
  const again = await start('again', [admins, onCall]);
  assert.equal((await showRedrive(await as(again, 'ann', 'oncall'), id)).state, 'paused');
  await again.stop();
  const { headers } = await adminAtChanged.get(`/api/v1/dlq/redrives/${id}`);
  const faster = await fetch(`${changed.url}/api/v1/dlq/redrives/${id}`, {
    method: 'PATCH',
    body: JSON.stringify({ rate_per_second: 1000 }),
    headers: {
      authorization: `Bearer ${await issuer.sign({ sub: 'bob', roles: ['admins'] })}`,
      'content-type': 'application/json',
      'if-match': headers.get('etag') ?? '',
    },
  });
  assert.equal(faster.status, 200, await faster.text());
  await commandRedrive(adminAtChanged, id, 'resume');
  const { counts } = await endedRedrive(adminAtChanged, id);
  assert.equal(counts['not_published'], 4);
});
