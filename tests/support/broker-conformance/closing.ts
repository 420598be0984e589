import assert from 'node:assert/strict';
import { limits, onlyPartition, positionAt, record, soon, topicWith, type Promises } from './fixtures.ts';

/** Each of these ends the broker that it is given. */
export const closingPromises: Promises = {
  'ends what waits when it is closed, and answers no more': async (broker) => {
    const topic = await topicWith(broker, 1);
    const info = await onlyPartition(broker, topic);
    const fetching = broker.fetch([positionAt(info, 0n)], { ...limits, maxWaitMs: 5000 });
    const began = performance.now();
    await Promise.all([assert.rejects(fetching), broker.close()]);
    assert.ok(performance.now() - began < 3000);
    await assert.rejects(broker.clusterId(), { code: 'SYS_BROKER_CLOSED' });
    const [result] = await broker.publish([record(topic)], soon);
    assert.ok(result?.result === 'failed' && result.retriable);
    await broker.close();
  },
};
