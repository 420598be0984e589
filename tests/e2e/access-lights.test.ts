import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Sql, sql } from '../../src/platform/postgres/sql.ts';
import { examineAuditSeal } from '../../src/cli/doctor/checks/audit-log.ts';
import type { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startGuardedSystem } from '../support/guarded-system.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** What readiness, metrics and doctor say about access and audit is broken for real, and mended. */

type Report = Readonly<{
  status: string;
  checks: Readonly<Record<string, Readonly<{ status: string; message?: string }>>>;
}>;

const metric = async ({ api }: TestSystem, name: string): Promise<number> =>
  Number(new RegExp(`^${name} (\\S+)$`, 'm').exec((await api.get('/metrics')).text)?.[1]);

describe('sealing that has stopped', () => {
  test('degrades readiness and doctor, and ages the metric, until somebody seals again', async (t) => {
    const system = await startTestSystem({ env: { ROLES: 'api' } });
    t.after(() => system.drop());
    const body = { reason: 'tested', create: true };
    assert.equal((await system.api.post('/api/v1/jobs/queues/mail/pause', body)).status, 200);
    const check = async () => (await system.api.get<Report>('/readyz')).body;
    assert.equal((await check()).checks['audit_seal']?.status, 'healthy');

    // Nobody has the role `workers`, for eleven minutes.
    await system.db.transaction(async (tx) => {
      await tx.query(new Sql([`SET LOCAL session_replication_role = 'replica'`], []));
      await tx.query(sql`UPDATE audit.events SET at = at - interval '11 minutes'`);
    });
    await eventually(async () => {
      const { status, checks } = await check();
      assert.deepEqual([status, checks['audit_seal']?.status], ['degraded', 'degraded']);
      assert.match(checks['audit_seal']?.message ?? '', /have not been sealed for 11 minutes/);
    });
    assert.equal((await examineAuditSeal(system.db)).status, 'warning');

    // A sealer that waits for a transaction of somebody else says so as well.
    let worker: TestSystem | undefined;
    t.after(() => worker?.stop());
    const ageS = async (): Promise<number> => {
      assert.ok(worker);
      return Date.now() / 1000 - (await metric(worker, 'audit_last_seal_timestamp_seconds'));
    };
    await system.db.transaction(async (tx) => {
      await tx.query(sql`SET LOCAL idle_in_transaction_session_timeout = '60s'`);
      await tx.query(sql`SELECT pg_current_xact_id()`);
      worker = await startTestSystem({ database: system.database, env: { ROLES: 'workers' } });
      await eventually(async () => assert.ok((await ageS()) > 600));
      assert.equal((await check()).checks['audit_seal']?.status, 'degraded');
    });
    await eventually(async () => {
      assert.deepEqual((await check()).checks['audit_seal'], { status: 'healthy' });
      assert.ok((await ageS()) < 60);
    });
    assert.equal((await examineAuditSeal(system.db)).status, 'ok');
  });
});

describe('an issuer that does not answer', () => {
  test('degrades readiness until it answers, and is never taken for a wrong token', async (t) => {
    const guarded = await startGuardedSystem();
    t.after(() => guarded.drop());
    const { issuer, system } = guarded;
    const admin = await guarded.as(['sys_admin']);
    const issuerCheck = async (client: ApiClient) => {
      const { body, text } = await client.get<{ checks: readonly { name: string; status: string }[] }>(
        '/api/v1/system',
      );
      return body.checks.find(({ name }) => name === 'issuer')?.status ?? text;
    };
    assert.equal(await issuerCheck(admin), 'healthy');
    await issuer.rotate();
    const newcomer = await guarded.as(['sys_admin'], { sub: 'grace' });
    await issuer.pause();
    await eventually(async () => assert.equal((await newcomer.get('/api/v1/me')).status, 503));
    assert.equal((await system.api.get<Report>('/readyz')).body.status, 'degraded');
    assert.equal(await issuerCheck(admin), 'degraded');

    await issuer.resume();
    // Nobody has to try: the server looks every ten seconds.
    await eventually(async () =>
      assert.equal((await system.api.get<Report>('/readyz')).body.status, 'healthy'),
    );
    assert.equal(await issuerCheck(newcomer), 'healthy');
  });
});
