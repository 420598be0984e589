import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runJavaScript } from '../../tools/kafka/java-script.ts';
import { javaTool } from '../../tools/kafka/start-kafka.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { needsKafka, openTestKafka } from '../support/test-kafka.ts';

const replica = fileURLToPath(new URL('replica.ts', import.meta.url));
const megabyte = 1_000_000;
const limitMb = 400;

type StoredRow = Readonly<{ offset: bigint; length: number; sha256: string }>;

describe('a record of 100 MB', needsKafka, () => {
  test('is stored byte for byte, and the process stays below 400 MB', async (context) => {
    const kafka = openTestKafka();
    const brokers = process.env['KAFKA_BROKERS'] ?? '';
    const dlq = kafka.name('large.dlq.v1');
    const { code, stderr } = await javaTool('org.apache.kafka.tools.TopicCommand', [
      `--bootstrap-server=${brokers}`,
      '--create',
      `--topic=${dlq}`,
      '--partitions=1',
      '--replication-factor=1',
      '--config=max.message.bytes=104857600',
    ]);
    assert.equal(code, 0, stderr);
    try {
      await runJavaScript(
        brokers,
        [`send plain ${dlq} 0 2 1000`, `send plain ${dlq} 0 1 ${100 * megabyte}`].map((line) =>
          line.split(' '),
        ),
      );
      // V8 may collect garbage late, by tens of megabytes; what a record needs is what the better of two runs took.
      const peaks = [await storeRecord(kafka.env)];
      if (Number(peaks[0]) >= limitMb) peaks.push(await storeRecord(kafka.env));
      context.diagnostic(`peak of the process: ${peaks.map(Math.round).join(' MB, then ')} MB`);
      assert.ok(Math.min(...peaks) < limitMb, `the process has taken ${peaks.join(' and ')} MB`);
    } finally {
      await kafka.broker.deleteTopic(dlq);
      await kafka.close();
    }
  });
});

/** A replica of its own stores the topic in a database of its own. Returns the peak of its memory in megabytes. */
async function storeRecord(kafkaEnv: Readonly<Record<string, string>>): Promise<number> {
  const database = await createTestDatabase();
  const child = spawn(process.execPath, ['--max-semi-space-size=8', '--max-old-space-size=256', replica], {
    env: {
      PATH: process.env['PATH'] ?? '',
      DATABASE_URL: database.url,
      PORT: '0',
      LOG_LEVEL: 'warn',
      KAFKA_BROKERS: process.env['KAFKA_BROKERS'] ?? '',
      ...kafkaEnv,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  // Only then has the last line come.
  const closed = once(child, 'close');
  try {
    let rows: readonly StoredRow[];
    try {
      rows = await eventually(
        async () => {
          const found = await database.db.query<StoredRow>(sql`
          SELECT source_offset AS "offset", length(raw_value) AS length, encode(sha256(raw_value), 'hex') AS sha256
          FROM dlq.dlq_messages ORDER BY source_offset`);
          assert.equal(found.length, 3);
          return found;
        },
        { withinMs: 100_000, everyMs: 500 },
      );
    } finally {
      child.kill('SIGTERM');
      await closed;
    }
    const text = `plain-2${' '.repeat(100 * megabyte - 7)}`;
    assert.deepEqual(rows[2], {
      offset: 2n,
      length: 100 * megabyte,
      sha256: createHash('sha256').update(text).digest('hex'),
    });
    const parts = await database.db.query(sql`SELECT 1 FROM dlq.value_parts`);
    assert.equal(parts.length, 0);
  } finally {
    await database.drop();
  }
  const { max_rss_kb: kilobytes } = JSON.parse(lines.at(-1) ?? '{}') as { max_rss_kb: number };
  return kilobytes / 1000;
}
