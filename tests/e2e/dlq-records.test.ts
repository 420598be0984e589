import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Header } from '../../src/platform/broker/port.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { arrivedMessages, showMessage, type MessageView, nothingLeft } from '../support/stored-message.ts';
import {
  headerTexts,
  needsKafka,
  openTestKafka,
  type TestKafka,
  type TestRecord,
} from '../support/test-kafka.ts';

/** Whatever a record is made of, it is stored and sent back byte for byte, and shown as far as it can be. */

type RawView = Readonly<{
  key_base64: string | null;
  value_base64: string | null;
  key_text?: string;
  value_text?: string;
  headers: readonly Readonly<{
    key: string | null;
    key_base64?: string;
    value: string | null;
    value_base64?: string;
  }>[];
}>;

type Case = Readonly<{
  name: string;
  record: Omit<TestRecord, 'topic'>;
  shows?: Partial<MessageView>;
}>;

const allBytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

const cases: readonly Case[] = [
  { name: 'nothing at all', record: {}, shows: { key: null, payload: null, error_message: 'unknown error' } },
  { name: 'a null value', record: { key: 'k' }, shows: { key: 'k', payload: null } },
  {
    name: 'an empty value and an empty key',
    record: { key: '', value: '' },
    shows: { key: '', payload: null },
  },
  { name: 'a binary key', record: { key: allBytes, value: '1' }, shows: { key: null, payload: 1 } },
  { name: 'a key with NUL', record: { key: 'a\0b', value: '1' }, shows: { key: null } },
  { name: 'every byte', record: { value: allBytes }, shows: { payload: null } },
  {
    name: 'invalid UTF-8 in JSON',
    record: { value: Buffer.from('{"a":"\xff"}', 'latin1') },
    shows: { payload: null },
  },
  { name: 'NUL in JSON', record: { value: '{"a":"\\u0000"}' }, shows: { payload: null } },
  { name: 'a lone surrogate in JSON', record: { value: '{"a":"\\ud83d"}' }, shows: { payload: null } },
  {
    name: 'a surrogate pair in JSON',
    record: { value: '{"a":"\\ud83d\\ude00"}' },
    shows: { payload: { a: '😀' } },
  },
  { name: 'JSON with a byte order mark', record: { value: '\ufeff{}' }, shows: { payload: null } },
  { name: 'JSON 512 levels deep', record: { value: deep(512) } },
  { name: 'JSON 20 000 levels deep', record: { value: deep(20_000) }, shows: { payload: null } },
  { name: 'a number beyond numeric', record: { value: '1e400000' }, shows: { payload: null } },
  {
    name: 'a number with many digits',
    record: { value: `1${'0'.repeat(140_000)}` },
    shows: { payload: null },
  },
  { name: 'JSON null', record: { value: 'null' }, shows: { payload: null } },
  { name: 'a repeated JSON key', record: { value: '{"a":1,"a":2}' }, shows: { payload: { a: 2 } } },
  { name: 'a JSON key named __proto__', record: { value: '{"__proto__":1}' } },
  {
    name: 'duplicate, null, empty and binary headers',
    record: {
      value: '1',
      headers: [
        ['h', 'first'],
        ['h', null],
        ['h', ''],
        ['', 'no name'],
        ['h', allBytes],
        [Buffer.from([0xff, 0x00]), 'no text'],
        ['h', 'last'],
      ],
    },
  },
  {
    name: '500 headers',
    record: { headers: Array.from({ length: 500 }, (_, i) => [`h${i}`, `${i}`] as const) },
  },
  {
    name: 'NUL and invalid UTF-8 in the error',
    record: { headers: [['error', Buffer.from('a\0b\xffc', 'latin1')]] },
    shows: { error_message: 'a\ufffdb\ufffdc' },
  },
  { name: 'a null error', record: { headers: [['error', null]] }, shows: { error_message: 'unknown error' } },
  { name: 'an error of 100 kB', record: { headers: [['error', 'e'.repeat(100_000)]] } },
];

describe('a record with', { ...needsKafka, concurrency: true }, () => {
  let kafka: TestKafka;
  let system: TestSystem;
  let topic: string;
  let dlq: string;
  let messages: readonly MessageView[];
  before(async () => {
    kafka = openTestKafka();
    topic = await kafka.createTopic('bytes.v1');
    dlq = await kafka.createTopic('bytes.dlq.v1');
    for (const { record } of cases) await kafka.publish({ topic: dlq, ...record });
    system = await startTestSystem({ kafka: 'real', env: kafka.env });
    messages = await arrivedMessages(system.api, topic, cases.length);
    await system.api.post(`/api/v1/dlq/${topic}/retry-all`);
  });
  after(async () => {
    await system?.drop();
    await kafka?.close();
  });

  for (const [index, { name, record, shows = {} }] of cases.entries())
    test(name, async () => {
      const listed = messages[index];
      assert.ok(listed);
      assert.equal(listed.source_offset, index);
      const shown = await showMessage(system.api, listed.id);
      assert.deepEqual({ ...shown, ...shows }, shown);
      assert.deepEqual([shown.status, shown.resolution], ['RESOLVED', 'published']);

      const stored = (await kafka.read(dlq))[index];
      const sent = (await kafka.read(topic))[index];
      assert.ok(stored && sent);
      assert.deepEqual(stored.key, record.key === undefined ? null : bufferOf(record.key));
      assert.deepEqual(stored.value, record.value === undefined ? null : bufferOf(record.value));
      assert.deepEqual([sent.key, sent.value], [stored.key, stored.value]);
      const kept = stored.headers.filter(({ key }) => key.toString() !== 'error');
      assert.deepEqual(headerTexts(sent.headers.slice(0, -3)), headerTexts(kept));

      const { status, body } = await system.api.get<RawView>(`/api/v1/dlq/messages/${listed.id}/raw`);
      assert.equal(status, 200);
      assert.equal(body.key_base64, stored.key?.toString('base64') ?? null);
      assert.equal(body.value_base64, stored.value?.toString('base64') ?? null);
      assert.deepEqual(headersOf(body), headerTexts(stored.headers));
    });

  test('none of them: every record is accounted for', async () => {
    type Accounting = { partitions: { topic: string; stored: number; lag: number; balanced: boolean }[] };
    const { body } = await system.api.get<Accounting>('/api/v1/dlq/accounting');
    const account = body.partitions.find((one) => one.topic === dlq);
    assert.deepEqual([account?.stored, account?.lag, account?.balanced], [cases.length, 0, true]);
  });

  test('900 kB', async () => {
    const large = await kafka.createTopic('large.v1');
    const largeDlq = await kafka.createTopic('large.dlq.v1');
    const value = Buffer.alloc(900_000, '{"blob": "0123456789abcdef"} ');
    const text = Buffer.from(JSON.stringify({ blob: 'x'.repeat(899_980) }));
    await kafka.publish({ topic: largeDlq, value });
    await kafka.publish({ topic: largeDlq, value: text });
    const [binary, json] = await arrivedMessages(system.api, large, 2);
    assert.ok(binary && json);
    assert.deepEqual([binary.payload_omitted, json.payload_omitted], [undefined, true]);
    const { body } = await system.api.post(`/api/v1/dlq/${large}/retry-all`);
    assert.deepEqual(body, { retried: 2, message: `2 messages retried in topic ${large}`, ...nothingLeft });
    const sent = (await kafka.read(large)).map((record) => record.value);
    assert.ok(sent[0]?.equals(value) === true && sent[1]?.equals(text) === true);
    const whole = await showMessage(system.api, json.id);
    assert.equal((whole.payload as { blob: string }).blob.length, 899_980);
  });

  test('a topic in its headers that cannot be one is unroutable, and its neighbours are not', async () => {
    const odd = await kafka.createTopic('odd.dlq.v1');
    const impossible = ['t'.repeat(300), '__consumer_offsets', '../x', 'a b', 'a\0b', 'ü', '.', '..'];
    for (const name of impossible)
      await kafka.publish({ topic: odd, value: '1', headers: [['original_topic', name]] });
    await kafka.publish({ topic: odd, value: '2' });
    const found = await arrivedMessages(system.api, odd, impossible.length + 1);
    const neighbour = found.at(-1);
    assert.deepEqual([neighbour?.original_topic, neighbour?.unroutable], [kafka.name('odd.v1'), false]);
    for (const { id, original_topic: original, unroutable } of found.slice(0, -1)) {
      assert.deepEqual([original, unroutable], [odd, true]);
      assertError(await system.api.post(`/api/v1/dlq/messages/${id}/retry`), 409, 'SYS_DLQ_CONFLICT');
    }
  });

  test('headers as long and as strange as a producer can make them', async () => {
    const strange = await kafka.createTopic('strange.dlq.v1');
    const int64 = Buffer.alloc(8, 0x7f);
    await kafka.publish({
      topic: strange,
      value: '{}',
      headers: [
        ['kafka_dlt-original-topic', kafka.name('elsewhere.v1')],
        ['kafka_dlt-original-offset', int64],
        ['kafka_dlt-original-timestamp', int64],
        ['kafka_dlt-original-partition', Buffer.alloc(4, 0x7f)],
        ['kafka_dlt-original-consumer-group', 'g'.repeat(20_000)],
        ['kafka_dlt-exception-fqcn', 'c'.repeat(20_000)],
        ['kafka_dlt-exception-message', Buffer.alloc(50_000, 0)],
        ['kafka_dlt-exception-stacktrace', Buffer.alloc(100_000, 0xff)],
      ],
    });
    const [message] = await arrivedMessages(system.api, strange, 1);
    assert.deepEqual(
      [message?.dialect, message?.original_topic],
      ['spring-kafka', kafka.name('elsewhere.v1')],
    );
  });

  test('fields that the database refuses is stored with its bytes, and its partition goes on', async () => {
    await refusePoison(system);
    const poisoned = await kafka.createTopic('poisoned.dlq.v1');
    const records = Array.from({ length: 40 }, (_, i) => ({
      topic: poisoned,
      key: `k${i}`,
      value: `{"i":${i}}`,
      headers: [['error', [3, 17, 39].includes(i) ? 'poison' : 'plain']] as const,
    }));
    for (const record of records) await kafka.publish(record);
    const stored = await arrivedMessages(system.api, poisoned, 40);
    const culprits = stored.filter((message) => message.unroutable);
    assert.deepEqual(
      culprits.map((message) => message.source_offset),
      [3, 17, 39],
    );
    for (const { id, source_offset: offset, error_message: error } of culprits) {
      assert.equal(error, "unknown error (the record's fields could not be stored: 22000)");
      const { body } = await system.api.get<RawView>(`/api/v1/dlq/messages/${id}/raw`);
      assert.deepEqual([body.key_text, body.value_text], [`k${offset}`, `{"i":${offset}}`]);
      assert.deepEqual(headersOf(body), [['error', 'poison']]);
    }
    type Sources = { sources: { topic: string; position: number; last_error: string | null }[] };
    const { body } = await system.api.get<Sources>('/api/v1/dlq/sources');
    const source = body.sources.find((one) => one.topic === poisoned);
    assert.deepEqual([source?.position, source?.last_error], [40, null]);
  });
});

/** Makes PostgreSQL refuse rows with this error message, as it refuses data that it cannot hold. */
async function refusePoison(system: TestSystem): Promise<void> {
  await system.db.query(sql`
    CREATE FUNCTION dlq.refuse() RETURNS TRIGGER LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '22000'; END $$`);
  await system.db.query(sql`
    CREATE TRIGGER refuse BEFORE INSERT ON dlq.dlq_messages
    FOR EACH ROW WHEN (NEW.error_message = 'poison') EXECUTE FUNCTION dlq.refuse()`);
}

function bufferOf(content: Buffer | string | null): Buffer | null {
  return content === null ? null : Buffer.from(content);
}

function headersOf(raw: RawView): readonly (readonly [string, string | null])[] {
  const bytes = (base64: string): Buffer => Buffer.from(base64, 'base64');
  return headerTexts(
    raw.headers.map(({ key, key_base64: key64, value_base64: value64 }): Header => ({
      key: key === null ? bytes(key64 ?? '') : Buffer.from(key),
      value: value64 === undefined ? null : bytes(value64),
    })),
  );
}
