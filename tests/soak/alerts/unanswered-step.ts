import assert from 'node:assert/strict';
import { recordSamples } from '../../alerts/record-samples.ts';
import { openSagaScene, shopStep, workflowOf } from '../../chaos/support/saga-scene.ts';
import { until } from '../../chaos/support/until.ts';
import { watchAlerts } from './watch-alerts.ts';

const pay = workflowOf(
  'pay',
  shopStep('charge', {
    service: 'careless',
    timeoutMs: 500,
    retry: { maxAttempts: 1, backoff: 'fixed', initialIntervalMs: 30 },
  }),
);
const gauge = 'saga_in_doubt_since_timestamp_seconds';

/** A participant that takes the call and never answers, nor its undo, until a person retries that. */
export async function leaveStepUnanswered(): Promise<void> {
  const at = await openSagaScene({
    script: { rules: [{ step: 'charge', does: { act: 'hang', effect: true } }] },
  });
  try {
    const replica = await at.start();
    const recorder = recordSamples(replica.url);
    const watch = watchAlerts(recorder);
    await recorder.scrape(6);
    const id = await at.beginOne(pay);
    await until('the doubt is measured', async () => (await replica.metric(gauge)) > 0, { withinMs: 60_000 });
    await recorder.scrape(6);
    watch.silent(['SagaInDoubt', 'ticket']);
    recorder.persist(66);
    watch.firing('a step is never answered; an hour passes (the last sample again)', [
      'SagaInDoubt',
      'ticket',
    ]);
    await at.becomes(id, 'needs attention', ({ needsAttention }) => needsAttention);
    await at.participant.setScript({});
    assert.equal((await at.act(id, 'retry', 'charge')).outcome, 'done');
    await at.ends(id, 'FAILED');
    const isDecided = async (): Promise<boolean> => (await replica.metric(gauge)) === 0;
    await until('the doubt is gone', isDecided, { withinMs: 60_000 });
    await recorder.scrape(2);
    watch.silent(['SagaInDoubt', 'ticket']);
    await watch.verify();
  } finally {
    await at.close();
  }
}
