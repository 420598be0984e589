import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';

/** Who was refused is on record, however often it was tried, and costs one row. */
let guarded: GuardedSystem;
before(async () => void (guarded = await startGuardedSystem()));
after(() => guarded.drop());

type Event = Readonly<{
  type: string;
  id: string;
  action: string;
  reason: string;
  resource: string;
  count: number;
  address: string;
}>;

test('denials and wrong tokens are counted, and written when the server stops', async () => {
  const operator = await guarded.as(['sys_operator'], { sub: 'ada' });
  for (let i = 0; i < 20; i++) assertError(await operator.post('/api/v1/keys', {}), 403);
  assertError(await operator.post('/api/v1/dlq/orders/retry-all'), 403);
  const forged = await guarded.as(['sys_admin'], { aud: 'another-service' });
  for (let i = 0; i < 15; i++)
    assert.ok([401, 429].includes((await forged.get('/api/v1/jobs')).status), 'a forged token');
  const { api } = guarded.system;
  assertError(await api.get('/api/v1/jobs'), 401, 'SYS_AUTH_MISSING_TOKEN');

  const auditor = await guarded.as(['sys_auditor']);
  const { text } = await auditor.get('/metrics');
  for (const sample of [
    'authz_denied_total{permission="access:keys:manage"} 20',
    'authz_denied_total{permission="dlq:messages:retry-all"} 1',
    'auth_attempts_total{outcome="accepted"} 22',
    'auth_attempts_total{outcome="refused"} 15',
    'auth_attempts_total{outcome="missing"} 1',
  ])
    assert.ok(text.includes(`${sample}\n`), sample);

  await guarded.system.stop();
  const events = await guarded.system.db.query<Event>(sql`
    SELECT actor_type AS type, actor_id AS id, action, reason, resource, item_count AS count, address
    FROM audit.events WHERE outcome = 'denied' ORDER BY seq`);
  const ada = { type: 'user', id: `user:${guarded.issuer.url}|ada`, address: '127.0.0.1' };
  const nobody = { type: 'local', id: 'nobody', address: '127.0.0.1' };
  assert.deepEqual(events, [
    {
      ...ada,
      action: 'access:keys:manage',
      reason: 'SYS_AUTH_PERMISSION_DENIED',
      resource: 'http/POST /api/v1/keys',
      count: 20,
    },
    {
      ...ada,
      action: 'dlq:messages:retry-all',
      reason: 'SYS_AUTH_PERMISSION_DENIED',
      resource: 'http/POST /api/v1/dlq/:topic/retry-all',
      count: 1,
    },
    {
      ...nobody,
      action: 'access:tokens:verify',
      reason: 'SYS_AUTH_TOKEN_INVALID',
      resource: 'http/GET /api/v1/jobs',
      count: 15,
    },
  ]);
});
