import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sleep } from '../../src/kernel/clock.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase } from '../support/database.ts';
import { startHookReceiver } from '../support/receivers.ts';
import { startReplica } from './support/start-replica.ts';
import { until } from './support/until.ts';

/** What a message counts, by its id: one that came twice is one. */
type Counts = ReadonlyMap<string, number>;

const kills = 3;
const eventsAtOnce = 20;
const subjects = 12;

describe('A process that is killed while it tells people', () => {
  it('loses no event and counts none twice, whenever that happens', async (t) => {
    const database = await createTestDatabase();
    t.after(() => database.drop());
    const { db } = database;
    const hook = await startHookReceiver();
    t.after(() => hook.goAway());
    const notify = [{ type: 'webhook', url: hook.url, secret: 'hunter2hunter2', cooldown: '1s' }];
    const start = () =>
      startReplica({
        DATABASE_URL: database.url,
        KAFKA_ENABLED: 'false',
        NOTIFY: JSON.stringify(notify),
        OUTBOX_BACKOFF_INITIAL_MS: '20',
        OUTBOX_BACKOFF_MAX_MS: '80',
        OUTBOX_STUCK_THRESHOLD_MIN: '0.1',
      });
    const received = (): Counts =>
      new Map(
        hook.received.map(({ bytes }) => {
          const { id, count } = JSON.parse(bytes.toString('utf8')) as { id: string; count: number };
          return [id, count];
        }),
      );

    const writing = new AbortController();
    let written = 0;
    const load = (async () => {
      while (!writing.signal.aborted) {
        await db.query(sql`
          INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
          SELECT 'jobs', 'dead_letter', 'queue-' || (n % ${subjects}), n::text, '' FROM generate_series(1, ${eventsAtOnce}) n`);
        written += eventsAtOnce;
        await sleep(20, writing.signal);
      }
    })();

    for (let killed = 0; killed < kills; killed++) {
      const before = hook.received.length;
      const victim = await start();
      await until('it tells', async () => hook.received.length > before || null, { explain: victim.log });
      // Somewhere in the middle of what it does all the time.
      await sleep(Math.random() * 200);
      await victim.kill();
      // Nobody has to wait for the lease of the dead.
      await db.query(sql`UPDATE platform.leases SET lease_until = now() WHERE name = 'notify'`);
    }
    writing.abort();
    await load;

    const last = await start();
    t.after(() => last.kill());
    const total = await until(
      'everything is told',
      async () => {
        const sum = [...received().values()].reduce((all, count) => all + count, 0);
        return sum >= written ? sum : null;
      },
      { withinMs: 120_000, explain: last.log },
    );
    assert.equal(total, written);
    assert.ok(received().size < written / 10, 'they are grouped');
  });
});
