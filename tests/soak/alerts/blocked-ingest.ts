import assert from 'node:assert/strict';
import { Client } from 'pg';
import { recordSamples } from '../../alerts/record-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { startTestSystem } from '../../support/start-system.ts';
import { openTestKafka } from '../../support/test-kafka.ts';
import { watchAlerts } from './watch-alerts.ts';

const many = 10_050;

/** A forgotten transaction holds a lock on the table of messages, so nothing can be stored. */
export async function blockIngest(): Promise<void> {
  const kafka = openTestKafka();
  const few = await kafka.createTopic('few.dlq.v1');
  const full = await kafka.createTopic('full.dlq.v1');
  const system = await startTestSystem({ kafka: 'real', env: kafka.env });
  const recorder = recordSamples(system.url);
  const watch = watchAlerts(recorder);
  const lagIs = (topic: string, lag: number): Promise<void> =>
    eventually(
      async () => {
        const { text } = await system.api.get('/metrics');
        assert.match(
          text,
          new RegExp(`^dlq_ingest_stable_lag\\{topic="${topic}",partition="0"\\} ${lag}$`, 'm'),
        );
      },
      { withinMs: 60_000 },
    );
  const blocker = new Client({ connectionString: system.database.url });
  await blocker.connect();
  const alertOf = (topic: string) => ['DlqIngestLagging', 'page', `topic="${topic}"`] as const;
  try {
    await kafka.publish({ topic: few, value: '{}' });
    await lagIs(few, 0);
    await recorder.scrape(12);
    watch.silent(alertOf(few), alertOf(full));
    await blocker.query('BEGIN; LOCK TABLE dlq.dlq_messages IN SHARE MODE');
    await kafka.publish({ topic: few, value: '{}' });
    const record = { topic: full, key: null, value: Buffer.from('{}'), headers: [] };
    for (let i = 0; i < many; i += 1050)
      await kafka.broker.publish(
        Array.from({ length: Math.min(1050, many - i) }, () => record),
        {
          timeoutMs: 20_000,
        },
      );
    await lagIs(few, 1);
    await lagIs(full, many);
    await recorder.scrape(5);
    watch.silent(alertOf(few), alertOf(full));
    await recorder.scrape(18);
    const how = 'an open transaction locks the messages, ';
    watch.firing(`${how}1 record waits`, alertOf(few));
    watch.firing(`${how}${many} records wait`, alertOf(full));
    await blocker.query('COMMIT');
    await lagIs(few, 0);
    await lagIs(full, 0);
    await recorder.scrape(2);
    watch.silent(alertOf(few), alertOf(full));
    await watch.verify();
  } finally {
    await blocker.end();
    await system.drop();
    await kafka.close();
  }
}
