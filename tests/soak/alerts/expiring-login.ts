import assert from 'node:assert/strict';
import { recordSamples } from '../../alerts/record-samples.ts';
import { createDatabaseRole } from '../../support/database-role.ts';
import { createTestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { startTestSystem } from '../../support/start-system.ts';
import { watchAlerts } from './watch-alerts.ts';

/** The process looks once a minute. */
const noticedWithinMs = 90_000;

/** A role with the documented rights, whose password ends within the hour, and is then extended. */
export async function letLoginExpire(): Promise<void> {
  const database = await createTestDatabase();
  const role = await createDatabaseRole(database.url, 'server');
  const endsAfter = (minutes: number): Promise<void> =>
    role.asOwner(`ALTER role ROLE VALID UNTIL '${new Date(Date.now() + minutes * 60_000).toISOString()}'`);
  await endsAfter(24 * 60);
  const env = { DATABASE_URL: role.url, DATABASE_MIGRATE: 'false' };
  const system = await startTestSystem({ database, env });
  const recorder = recordSamples(system.url);
  const watch = watchAlerts(recorder);
  const expiresBetween = (from: number, to: number): Promise<void> =>
    eventually(
      async () => {
        const { text } = await system.api.get('/metrics');
        const at = /^db_credential_expiry_timestamp_seconds (\S+)$/m.exec(text)?.[1];
        const minutes = (Number(at) - Date.now() / 1000) / 60;
        assert.ok(minutes > from && minutes <= to, `the login expires in ${minutes} min`);
      },
      { withinMs: noticedWithinMs, everyMs: 500 },
    );
  try {
    await expiresBetween(60, 24 * 60);
    await recorder.scrape(8);
    watch.silent(['DbCredentialExpiring', 'page']);
    await endsAfter(50);
    await expiresBetween(0, 50);
    await recorder.scrape(8);
    watch.firing('the role is VALID UNTIL 50 minutes from now', ['DbCredentialExpiring', 'page']);
    await endsAfter(24 * 60);
    await expiresBetween(60, 24 * 60);
    await recorder.scrape(2);
    watch.silent(['DbCredentialExpiring', 'page']);
    await watch.verify();
  } finally {
    await system.stop();
    await role.drop();
    await database.drop();
  }
}
