import assert from 'node:assert/strict';
import { sleep } from '../../../src/kernel/clock.ts';
import { startKafka, type RunningKafka } from '../../../tools/kafka/start-kafka.ts';
import { recordSamples } from '../../alerts/record-samples.ts';
import { untilReadiness } from '../../chaos/support/readiness.ts';
import { rowsOf } from '../../chaos/support/ledger.ts';
import { retryOne } from '../../chaos/support/retry.ts';
import { idsFrom, openScene, type Scene } from '../../chaos/support/scene.ts';
import type { Replica } from '../../chaos/support/start-replica.ts';
import { watchAlerts, type WatchedAlert } from './watch-alerts.ts';

const publishFailing: WatchedAlert = ['DlqPublishFailing', 'ticket'];
const discovery: WatchedAlert = ['LoopStalled', 'page', 'slice="dlq",loop="discovery"'];
const otherLoops: WatchedAlert = ['LoopStalled', 'page', 'loop!="discovery"'];

/** Loops are late after five minutes: 15 s are recorded as a minute. A loop that works reports once a minute. */
const ageFactor = 4;
const minuteMs = 60_000 / ageFactor;

/** A broker that refuses records, and then is killed. */
export async function loseBroker(): Promise<void> {
  const kafka = await startKafka();
  const at = await openScene({ brokers: kafka.brokers });
  try {
    const replica = await at.start();
    await untilReadiness(replica, 'healthy');
    await refuseRecords(kafka, at, replica);
    const loops = recordSamples(replica.url, ageFactor);
    const loopWatch = watchAlerts(loops);
    const minute = (): Promise<void> => sleep(minuteMs);
    await loops.scrape(2, minute);
    loopWatch.silent(discovery, otherLoops);
    await kafka.kill();
    await loops.scrape(8, minute);
    loopWatch.firing(`the broker is killed (ages ${ageFactor} times as long)`, discovery);
    loopWatch.silent(otherLoops);
    await kafka.restart();
    await untilReadiness(replica, 'healthy');
    await loops.scrape(2, minute);
    loopWatch.silent(discovery, otherLoops);
    await loopWatch.verify();
  } finally {
    await at.close();
    await kafka.stop();
  }
}

/** The topic no longer takes records of their size. A broker that does not answer costs no attempt. */
async function refuseRecords(kafka: RunningKafka, at: Scene, replica: Replica): Promise<void> {
  await at.fail(idsFrom('waiting', 5), { padding: 1000 });
  await at.taken();
  const recorder = recordSamples(replica.url);
  const watch = watchAlerts(recorder);
  await recorder.scrape(12);
  watch.silent(publishFailing);
  const { code, stderr } = await kafka.javaTool('kafka.admin.ConfigCommand', [
    '--bootstrap-server',
    kafka.brokers,
    '--alter',
    '--entity-type',
    'topics',
    '--entity-name',
    at.originalTopic,
    '--add-config',
    'max.message.bytes=100',
  ]);
  assert.equal(code, 0, stderr);
  const failed = (): Promise<number> => replica.metric('dlq_retries_total', 'outcome="failed"');
  for (const [i, { id }] of (await rowsOf(at)).entries()) {
    await retryOne(id, replica);
    assert.equal(await failed(), i + 1);
    await recorder.scrape(4);
  }
  watch.firing('the topic refuses records of the size of those that are retried', publishFailing);
  await recorder.scrape(12);
  watch.silent(publishFailing);
  await watch.verify();
}
