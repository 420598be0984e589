import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runJavaScript } from '../../tools/kafka/java-script.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { runRedrive } from '../support/run-redrive.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { archiveEverything, arrivedMessages } from '../support/stored-message.ts';
import { needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** The broker's records beside what is stored of them, one by one. */

type Offenders = Readonly<{ count: number; offsets: readonly number[] }>;
type Verified = Readonly<{
  ok: boolean;
  from: number;
  to: number;
  next: number | null;
  broker: Readonly<{ records: number; control: number; aborted: number; gaps: number }>;
  stored: Readonly<{ messages: number; archived: number; came_back: number; deleted: number }>;
  missing: Offenders;
  different: Offenders;
  unexpected: Offenders;
}>;

describe('verify', needsKafka, () => {
  let kafka: TestKafka;
  let system: TestSystem;
  before(async () => {
    kafka = openTestKafka();
    system = await startTestSystem({ kafka: 'real', env: kafka.env });
  });
  after(async () => {
    await system.drop();
    await kafka.close();
  });

  const verify = async (topic: string, query = ''): Promise<Verified> => {
    const { status, body, text } = await system.api.get<Verified>(
      `/api/v1/dlq/sources/${topic}/0/verify${query}`,
    );
    assert.equal(status, 200, text);
    return body;
  };
  const none = { count: 0, offsets: [] };

  test('finds every record again as what it has become, and names what is missing, different or unexpected', async () => {
    const dlq = await kafka.createTopic('verified.dlq.v1');
    const id = kafka.name('producer');
    const script = [`begin ${id}`, `send ${id} ${dlq} 0 2 20`, `abort ${id}`, `send plain ${dlq} 0 5 20`];
    await runJavaScript(
      process.env['KAFKA_BROKERS'] ?? '',
      script.map((line) => line.split(' ')),
    );
    const messages = await arrivedMessages(system.api, dlq, 5);
    const end = await eventually(async () => {
      const { to, broker } = await verify(dlq);
      assert.equal(broker.records, 5);
      return to;
    });
    const [archived, deleted, ...left] = messages;
    assert.ok(archived && deleted);
    await system.api.post(`/api/v1/dlq/messages/${archived.id}/dead`);
    await archiveEverything(system.db);
    await system.api.delete(`/api/v1/dlq/messages/${deleted.id}`);
    const all = await verify(dlq);
    assert.deepEqual([all.ok, all.from, all.next, all.missing], [true, 0, null, none]);
    assert.deepEqual(all.broker, { records: 5, control: end - 7, aborted: 2, gaps: 0 });
    assert.deepEqual(all.stored, { messages: 3, archived: 1, came_back: 0, deleted: 1 });

    const [lost, spoilt, doubtful] = left;
    await system.db.query(sql`DELETE FROM dlq.dlq_messages WHERE id = ${lost?.id}`);
    await system.db.query(sql`UPDATE dlq.dlq_messages SET raw_value = 'other' WHERE id = ${spoilt?.id}`);
    await system.db.query(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, source_topic_id, source_partition, source_offset)
      SELECT 'x', 'x', source_topic, source_topic_id, source_partition, 1 FROM dlq.dlq_messages WHERE id = ${doubtful?.id}`);
    const bad = await verify(dlq);
    assert.equal(bad.ok, false);
    assert.deepEqual(bad.missing, { count: 1, offsets: [lost?.source_offset] });
    assert.deepEqual(bad.different, { count: 1, offsets: [spoilt?.source_offset] });
    assert.deepEqual(bad.unexpected, { count: 1, offsets: [1] });
    assert.equal((await verify(dlq, `?from=0&to=1`)).ok, true);
    const printed = await runRedrive(['dlq', 'verify', dlq, '0'], { REDRIVE_URL: system.url });
    assert.equal(printed.code, 1);
    assert.match(printed.out, new RegExp(`^${dlq} +0 +0 +${end} +5 +1 +1 +1 +NO$`, 'm'));
    assert.match(printed.err, new RegExp(`${dlq}/0 missing: ${lost?.source_offset}$`, 'm'));
  });

  test('a range of more offsets than a call looks at is walked through', async () => {
    const dlq = await kafka.createTopic('walked.dlq.v1');
    const records = Array.from({ length: 21_000 }, (_, i) => ({
      topic: dlq,
      key: null,
      value: Buffer.from(`{"i":${i}}`),
      headers: [],
    }));
    await kafka.broker.publish(records, { timeoutMs: 30_000 });
    await eventually(async () => assert.equal((await verify(dlq, '?from=20999')).broker.records, 1));
    const first = await verify(dlq);
    assert.ok(first.ok && first.next !== null && first.next <= 20_000, JSON.stringify(first));
    const printed = await runRedrive(['dlq', 'verify', dlq, '--json'], { REDRIVE_URL: system.url });
    const { ok, partitions } = JSON.parse(printed.out) as { ok: boolean; partitions: readonly Verified[] };
    assert.deepEqual(
      [printed.code, ok, partitions[0]?.broker.records, partitions[0]?.next],
      [0, true, 21_000, null],
    );
  });

  test('of several calls at once one is answered, and the command waits for its turn', async () => {
    const dlq = await kafka.createTopic('crowded.dlq.v1');
    await kafka.publish({ topic: dlq, value: 'one' });
    await arrivedMessages(system.api, dlq, 1);
    const path = `/api/v1/dlq/sources/${dlq}/0/verify`;
    const answers = await Promise.all(Array.from({ length: 5 }, () => system.api.get(path)));
    const refused = answers.filter(({ status }) => status !== 200);
    assert.ok(refused.length > 0 && refused.length < 5);
    for (const answer of refused) {
      assertError(answer, 503, 'SYS_DLQ_VERIFY_BUSY');
      assert.equal(answer.headers.get('retry-after'), '1');
    }
    const printed = await Promise.all(
      Array.from({ length: 3 }, () => runRedrive(['dlq', 'verify', dlq, '0'], { REDRIVE_URL: system.url })),
    );
    assert.deepEqual(
      printed.map(({ code }) => code),
      [0, 0, 0],
    );
  });

  test('an unknown partition is 404, a range that ends before it begins 400', async () => {
    const dlq = await kafka.createTopic('odd.dlq.v1');
    await eventually(() => verify(dlq));
    assertError(await system.api.get('/api/v1/dlq/sources/unknown/0/verify'), 404, 'SYS_DLQ_NOT_FOUND');
    assertError(await system.api.get(`/api/v1/dlq/sources/${dlq}/0/verify?from=5&to=4`), 400);
    assert.deepEqual((await verify(dlq, '?from=7')).broker.records, 0);
  });
});
