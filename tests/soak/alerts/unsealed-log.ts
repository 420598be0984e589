import assert from 'node:assert/strict';
import { sleep } from '../../../src/kernel/clock.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { recordSamples } from '../../alerts/record-samples.ts';
import { startTestSystem } from '../../support/start-system.ts';
import { watchAlerts } from './watch-alerts.ts';

/** The server seals every ten seconds: of an age, a scrape is twenty times as long. */
const scrapeEveryMs = 3000;

/** A transaction that stays open for half an hour of the samples, and may still write an event. */
export async function leaveTransactionOpen(): Promise<void> {
  const system = await startTestSystem();
  const recorder = recordSamples(system.url, 60_000 / scrapeEveryMs);
  const watch = watchAlerts(recorder);
  const act = async (): Promise<void> => {
    await sleep(scrapeEveryMs);
    const body = { reason: 'tested', create: true };
    const [paused, resumed] = ['pause', 'resume'].map((verb) => `/api/v1/jobs/queues/mail/${verb}`);
    assert.equal((await system.api.post(paused ?? '', body)).status, 200);
    assert.equal((await system.api.post(resumed ?? '', { reason: 'tested' })).status, 200);
  };
  try {
    await recorder.scrape(18, act);
    watch.silent(['AuditSealStale', 'ticket']);
    await system.db.transaction(async (tx) => {
      await tx.query(sql`SET LOCAL idle_in_transaction_session_timeout = 0`);
      await tx.query(sql`SELECT pg_current_xact_id()`);
      await recorder.scrape(20, act);
    });
    watch.firing('a transaction that has written stays open', ['AuditSealStale', 'ticket']);
    await recorder.scrape(6, act);
    watch.silent(['AuditSealStale', 'ticket']);
    await watch.verify();
  } finally {
    await system.drop();
  }
}
