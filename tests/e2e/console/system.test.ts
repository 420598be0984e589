import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startGuardedConsole, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { cutDatabase } from '../../support/cut-database.ts';

/** Each thing is broken for real, and the page has to say so: a light that stays green is worse than none. */
describeConsole('the system', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startGuardedConsole({
      more: {
        roles: ['api', 'workers', 'ingest'],
        notify: [
          {
            type: 'webhook',
            name: 'pager',
            url: 'http://127.0.0.1:9/a-secret-path',
            secret: 'a-signature-key-of-32-characters',
          },
        ],
      },
    });
  });
  after(() => system.drop());

  const open = async (t: Parameters<typeof openConsole>[0], expectedErrors: readonly RegExp[] = []) => {
    const page = await openConsole(t, { browser, system, path: '/system', expectedErrors });
    const panel = (name: string) => page.getByRole('region', { name, exact: true }).first();
    return { page, panel };
  };

  test('shows the checks, the replica that answers, its leases and no secret', async (t) => {
    const { page, panel } = await open(t);
    await panel('Readiness').getByText('Every check passes.').waitFor();
    await panel('Readiness')
      .getByRole('row', { name: /^database / })
      .getByText('healthy')
      .waitFor();
    await panel('Replicas').getByText('api, workers, ingest').first().waitFor();
    await panel('Replicas')
      .getByRole('row', { name: /jobs\.gauges/ })
      .waitFor();
    await panel('Ingest').getByText('No dead-letter topic is read.').waitFor();
    await panel('Notifiers').getByRole('row', { name: /pager/ }).getByText('delivers').waitFor();
    const settings = panel('Configuration');
    await settings.getByRole('searchbox', { name: 'Search settings' }).fill('notify.pager');
    await settings
      .getByRole('row', { name: /notify\.pager\.secret/ })
      .getByText('hidden')
      .waitFor();
    await settings.getByRole('row', { name: /notify\.pager\.url http:\/\/127\.0\.0\.1:9/ }).waitFor();
    const html = await page.content();
    for (const secret of ['a-secret-path', 'a-signature-key']) assert.ok(!html.includes(secret), secret);
    await assertAccessible(page);
  });

  test('a replica that is heard of no more, and a lease that nobody holds', async (t) => {
    const { db } = system;
    await db.query(sql`
      INSERT INTO platform.replicas (replica_id, roles, version, seen_at)
      VALUES ('lost-one', '{workers}', '0.0.9', clock_timestamp() - interval '1 minute')`);
    await db.query(sql`
      INSERT INTO platform.leases (name, lease_owner, lease_until)
      VALUES ('test.nobody', 'lost-one', clock_timestamp() - interval '1 minute')`);
    const { panel } = await open(t);
    await panel('Replicas')
      .getByRole('row', { name: /lost-one/ })
      .getByText('lost', { exact: true })
      .waitFor();
    await panel('Replicas')
      .getByRole('row', { name: /test\.nobody/ })
      .getByText(/this work is not done/)
      .waitFor();
  });

  test('a partition that is stopped, and a sum that does not add up', async (t) => {
    await system.db.query(sql`
      INSERT INTO dlq.source_partitions
        (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset, log_end, stored, stopped,
         last_error, last_error_at)
      VALUES ('c', 'orders.dlq', gen_random_uuid(), 0, 0, 40, 40, 100, 39, true, 'record too large', now())`);
    const { panel } = await open(t);
    const row = panel('Ingest').getByRole('row', { name: /orders\.dlq \/ 0/ });
    await row.getByText('stopped').waitFor();
    await row.getByText('record too large').waitFor();
    await panel('Ingest')
      .getByText(/^60 records behind/)
      .waitFor();
    await panel('Accounting').getByText('mismatch').waitFor();
    await panel('Accounting')
      .getByText(/records may be missing/)
      .waitFor();
  });

  test('a notification that was not delivered turns two lights', async (t) => {
    await system.db.query(sql`
      INSERT INTO outbox.outbox_orders
        (idempotency_key, request_json, request_digest, status, next_attempt_at, destination)
      VALUES ('n-1', '{}', 'd', 'dead', now(), '_notify_pager')`);
    const { panel } = await open(t);
    await panel('Notifiers')
      .getByRole('row', { name: /pager/ })
      .getByText(/nobody was told/)
      .waitFor();
    await panel('Readiness').getByText('It works, but some checks fail.').waitFor();
    const first = panel('Readiness').getByRole('row').nth(1);
    await first.getByText('degraded').waitFor();
  });

  test('the database goes away: the light turns while one looks, and turns back', async (t) => {
    const { panel } = await open(t, [/503/, /500/]);
    const readiness = panel('Readiness');
    await readiness
      .getByRole('row', { name: /^database / })
      .getByText('healthy', { exact: true })
      .waitFor();
    const end = await cutDatabase(system.system.database.url);
    try {
      await readiness.getByText('It cannot work.').waitFor();
      await readiness
        .getByRole('row', { name: /^database / })
        .getByText('unhealthy')
        .waitFor();
      await panel('Replicas').getByRole('alert').getByText(/SYS_/).waitFor();
    } finally {
      await end();
    }
    await readiness
      .getByRole('row', { name: /^database / })
      .getByText('healthy', { exact: true })
      .waitFor();
    await panel('Replicas').getByRole('alert').waitFor({ state: 'detached' });
  });

  test('a server that does not answer: what was green is not known', async (t) => {
    const { page, panel } = await open(t, [/Failed to load resource/, /ERR_/]);
    await panel('Readiness')
      .getByRole('row', { name: /^database / })
      .waitFor();
    await page.route('**/api/v1/system', (route) => route.abort());
    await panel('Readiness')
      .getByText(/^Not known/)
      .waitFor();
    assert.equal(await panel('Readiness').getByText('healthy').count(), 0);
  });

  test('who sees only some topics does not see the whole system', async (t) => {
    const page = await openConsole(t, {
      browser,
      system,
      path: '/system',
      as: 'narrow_sys_operator',
      expectedErrors: [/403/],
    });
    await page
      .getByRole('region', { name: 'Readiness' })
      .getByRole('alert')
      .getByText('SYS_AUTH_PERMISSION_DENIED')
      .waitFor();
    assert.equal(await page.getByText('pager').count(), 0);
  });
});
