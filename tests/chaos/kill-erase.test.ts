import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createApiClient } from '../support/api-client.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startServerProcess } from '../support/redrive-process.ts';

/** A process that is killed during an erasure leaves whole batches, each with its audit event; the next run does the rest. */

const messages = 3000;
type Erased = Readonly<{ messages: number; remaining: number }>;

describe('An erasure whose process is killed', () => {
  it('is finished by the next one, and the audit log accounts for every message', async (t) => {
    const database = await createTestDatabase();
    t.after(() => database.drop());
    const { db } = database;
    const count = async (where = sql`true`): Promise<number> => {
      const [row] = await db.query<{ count: number }>(sql`
        SELECT count(*)::int AS count FROM dlq.dlq_messages WHERE ${where}`);
      return row?.count ?? 0;
    };
    await db.query(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, message_key, raw_value)
      SELECT 'orders.v1', 'failed', 'orders.dlq.v1', convert_to(CASE WHEN n % 4 = 0 THEN 'other' ELSE 'k' END, 'UTF8'), '1'
      FROM generate_series(1, ${messages}::int) AS n`);
    const toErase = await count(sql`message_key = 'k'`);
    const env = { DATABASE_URL: database.url, KAFKA_ENABLED: 'false' };
    const start = async () => {
      const server = await startServerProcess(env);
      return { server, api: createApiClient(server.url) };
    };
    const victim = await start();
    const lost = victim.api
      .post('/api/v1/dlq/erasures', { key: 'k', reason: 'request 17' })
      .catch(() => null);
    await eventually(async () => assert.ok((await count()) < messages));
    await victim.server.kill();
    await lost;
    const left = await count(sql`message_key = 'k'`);
    assert.ok(left < toErase, 'at least a batch was erased');
    const audited = async (): Promise<number> => {
      const [row] = await db.query<{ items: number }>(sql`
        SELECT COALESCE(sum((detail->>'messages')::int), 0)::int AS items FROM audit.events
        WHERE action = 'dlq:messages:erase' AND outcome = 'success' AND detail ? 'part'`);
      return row?.items ?? 0;
    };
    assert.equal(await audited(), toErase - left);

    const heir = await start();
    const { body, status, text } = await heir.api.post<Erased>('/api/v1/dlq/erasures', {
      key: 'k',
      reason: 'request 17, continued',
    });
    await heir.server.stop();
    assert.deepEqual([status, body.messages, body.remaining], [200, left, 0], text);
    assert.equal(await audited(), toErase);
    assert.equal(await count(), messages - toErase);
  });
});
