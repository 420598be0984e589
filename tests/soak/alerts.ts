import { after, describe, test } from 'node:test';
import { needsKafka } from '../support/test-kafka.ts';
import { needsPromtool } from '../support/test-promtool.ts';
import { blockIngest } from './alerts/blocked-ingest.ts';
import { breakPartner } from './alerts/broken-partner.ts';
import { loseBroker } from './alerts/broker-away.ts';
import { loseDatabase } from './alerts/database-away.ts';
import { letLoginExpire } from './alerts/expiring-login.ts';
import { loseLeases } from './alerts/lost-leases.ts';
import { pauseReplica } from './alerts/paused-replica.ts';
import { leaveStepUnanswered } from './alerts/unanswered-step.ts';
import { leaveTransactionOpen } from './alerts/unsealed-log.ts';
import { printTable } from './alerts/watch-alerts.ts';

/**
 * `npm test -- tests/soak/alerts.ts --test-timeout=900000`: causes the conditions of alerts in real servers, and gives
 * the samples that were scraped from them to the real rules. A scrape counts as a minute. Those that take seconds to
 * cause are in tests/alerts/real-conditions.test.ts.
 */
describe(
  'alerts are silent before their condition, fire during it, and are silent after it',
  needsPromtool,
  () => {
    describe('caused', { concurrency: 3 }, () => {
      test('by a database that is locked, then away, and a replica that is killed', loseDatabase);
      test('by a broker that refuses records, then is killed', needsKafka, loseBroker);
      test('by a replica that is stopped for a minute', needsKafka, pauseReplica);
      test('by a login that expires', letLoginExpire);
      test('by a lock that keeps dead letters from being stored', needsKafka, blockIngest);
      test('by a partner that does not answer, then is stopped', breakPartner);
      test('by a worker that is stopped for longer than its lease', loseLeases);
      test('by a participant that does not answer', leaveStepUnanswered);
      test('by a transaction that stays open', leaveTransactionOpen);
    });
    after(printTable);
  },
);
