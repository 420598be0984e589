import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import { decodeFailure } from '../../src/dlq/ingest/decoding/decode-failure.ts';
import { assertError } from '../support/api-client.ts';
import { goldenNames, readGoldenRecord, type GoldenRecord } from '../support/golden/golden-record.ts';
import { planRedrive } from '../support/redrives.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import {
  arrivedMessages,
  historyOf,
  showMessage,
  type MessageView,
  type RetryAllView,
} from '../support/stored-message.ts';
import { headerTexts, needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** Every golden record on its way from a real dead-letter topic through the API and the command line, and back. */

/** Headers that are not of a failure, in any golden record. */
const application = new Set(['traceparent', 'NServiceBus.MessageId', 'id', 'message-type']);

const pointer = 'share-group-pointer';

describe('a dead letter as written by', { ...needsKafka, concurrency: true }, () => {
  let kafka: TestKafka;
  let system: TestSystem;
  let topic: string;
  let dlq: string;
  let messages: readonly MessageView[];
  let answer: RetryAllView;

  /** The golden record, with the topic of this test in the place of its own. */
  function relocated(name: string): GoldenRecord {
    const record = readGoldenRecord(name);
    const headers = record.headers.map(({ key, value }) => {
      const text = value?.toString('latin1') ?? '';
      return { key, value: value && Buffer.from(text.replaceAll('orders.events.v1', topic), 'latin1') };
    });
    return { ...record, headers };
  }

  before(async () => {
    kafka = openTestKafka();
    topic = await kafka.createTopic('orders.v1');
    dlq = await kafka.createTopic('dialects.dlq.v1');
    for (const name of goldenNames) {
      const { key, value, headers } = relocated(name);
      await kafka.publish({
        topic: dlq,
        key,
        value,
        headers: headers.map((header) => [header.key, header.value] as const),
      });
    }
    system = await startTestSystem({ kafka: 'real', env: kafka.env });
    messages = await arrivedMessages(system.api, topic, goldenNames.length);
    answer = (await system.api.post<RetryAllView>(`/api/v1/dlq/${topic}/retry-all`)).body;
  });
  after(async () => {
    await system?.drop();
    await kafka?.close();
  });

  async function shownByCli(id: string): Promise<Readonly<Record<string, string>>> {
    const said = { out: '', err: '' };
    const into = (stream: 'out' | 'err') => ({
      write: (data: string | Uint8Array): void => void (said[stream] += data.toString()),
    });
    const code = await runCli(['dlq', 'show', id], {
      env: { REDRIVE_URL: system.url },
      stdin: new PassThrough(),
      stdout: into('out'),
      stderr: into('err'),
    });
    assert.deepEqual([code, said.err], [0, '']);
    const facts = said.out.split('\n').map((line) => /^([a-z ]+?) {2,}(.+)$/.exec(line));
    return Object.fromEntries(facts.flatMap((fact) => (fact === null ? [] : [[fact[1], fact[2]]])));
  }

  for (const [index, name] of goldenNames.entries())
    test(`${name} is understood, and goes back without its failure`, async () => {
      const { key, value, headers } = relocated(name);
      const told = decodeFailure(headers);
      const id = messages[index]?.id ?? '';
      const shown = await showMessage(system.api, id);
      assert.equal(shown.source_offset, index);
      assert.deepEqual(
        {
          dialect: shown.dialect,
          original_topic: shown.original_topic,
          unroutable: shown.unroutable,
          error_message: shown.error_message,
          error_class: shown.error_class,
          consumer_group: shown.consumer_group,
          original_partition: shown.original_partition,
          original_offset: BigInt(shown.original_offset ?? -1),
          original_ms: shown.original_timestamp === null ? null : Date.parse(shown.original_timestamp),
        },
        {
          dialect: told.dialect,
          original_topic: topic,
          unroutable: false,
          error_message: told.errorMessage,
          error_class: told.errorClass ?? null,
          consumer_group: told.consumerGroup ?? null,
          original_partition: told.originalPartition ?? null,
          original_offset: BigInt(Number(told.originalOffset ?? -1n)),
          original_ms: told.originalTimestampMs ?? null,
        },
      );

      const facts = await shownByCli(id);
      assert.deepEqual(
        [facts['dialect'], facts['error class'], facts['consumer group']],
        [told.dialect, told.errorClass, told.consumerGroup],
      );
      if (name === pointer) return;

      const [, published] = await historyOf(system.api, id);
      assert.equal(published?.event, 'published');
      const sent = (await kafka.read(topic)).find(({ offset }) => Number(offset) === published.offset);
      assert.ok(sent);
      assert.deepEqual([sent.key, sent.value], [key, value]);
      const originalMs = told.originalTimestampMs ?? Number((await kafka.read(dlq))[index]?.timestamp);
      assert.deepEqual(headerTexts(sent.headers), [
        ...headerTexts(headers.filter((header) => application.has(header.key.toString()))),
        ['redrive-message-id', id],
        ['redrive-attempt', '1'],
        ['redrive-original-timestamp', String(originalMs)],
      ]);
    });

  test('a share group that does not copy the record is never sent: its value is not known', async () => {
    assert.deepEqual([answer.retried, answer.excluded], [goldenNames.length - 1, 1]);
    assert.deepEqual(answer.exclusions, [{ reason: 'no_value', topic, count: 1 }]);
    const id = messages[goldenNames.indexOf(pointer)]?.id ?? '';
    const error = assertError(
      await system.api.post(`/api/v1/dlq/messages/${id}/retry`),
      409,
      'SYS_DLQ_CONFLICT',
    );
    assert.match(error.message, /^message has no value to publish: it only points to its record;/);
    const { status, retry_count, attempt_no } = await showMessage(system.api, id);
    assert.deepEqual([status, retry_count, attempt_no], ['PENDING', 0, 0]);
    const { counts, excluded } = await planRedrive(system.api, { filter: { ids: [id] } });
    assert.deepEqual([counts.selected, excluded], [0, [{ reason: 'no_value', count: 1, sample_ids: [id] }]]);
    assert.equal((await kafka.read(topic)).length, goldenNames.length - 1);
  });
});
