import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { checkLedger, inFlight, untilReaped, type InFlight } from './support/ledger.ts';
import { retryAll } from './support/retry.ts';
import { idsFrom, openScene } from './support/scene.ts';

const killer = 'killer-message';

describe('A message whose publish kills the process', { skip: await whyNoKafka() }, () => {
  it('ends dead after its three attempts, and its 499 neighbours are resolved', async (t) => {
    const at = await openScene();
    t.after(() => at.close());
    const neighbours = idsFrom('neighbour', 499);
    await at.fail([...neighbours.slice(0, 250), killer, ...neighbours.slice(250)]);
    const plan = { faults: [{ at: 'claimed', act: 'kill', marker: killer }] } as const;
    const crashes: InFlight[] = [];
    let replica = await at.start(plan);
    await at.taken();

    // The call after the last crash finds what the lone killer has left in line behind it.
    while ((await retryAll(at, replica)) === null) {
      assert.equal(await replica.died(), 'SIGKILL');
      crashes.push(await inFlight(at));
      replica = await at.start(plan);
      await untilReaped(at);
    }

    assert.equal(crashes.length, 3, 'it takes the process down once per attempt');
    assert.deepEqual(
      crashes[2]?.map(({ name }) => name),
      [killer],
      'the last time it is alone',
    );
    const rows = await checkLedger(at, replica, crashes);
    const dead = rows.filter(({ status }) => status === 'DEAD');
    assert.deepEqual(
      dead.map(({ name, retryCount }) => [name, retryCount]),
      [[killer, 3]],
    );
    assert.equal(rows.filter(({ status }) => status === 'RESOLVED').length, 499);
  });
});
