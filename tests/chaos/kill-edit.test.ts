import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { assertError, createApiClient } from '../support/api-client.ts';
import { readAll } from '../support/broker-conformance.ts';
import { edit, tryEdit } from '../support/edits.ts';
import { rowsOf, untilReaped } from './support/ledger.ts';
import { retryOne } from './support/retry.ts';
import { openScene, type Scene } from './support/scene.ts';

/** A process that is killed between claim and settle leaves a message of which an edit does not know what was sent. */

type Left = Readonly<{ at: Scene; id: string; api: ReturnType<typeof createApiClient> }>;

describe('A message whose retry was killed', { skip: await whyNoKafka() }, () => {
  async function killedAt(t: TestContext, point: 'claimed' | 'published'): Promise<Left> {
    const at = await openScene();
    t.after(() => at.close());
    await at.fail(['message-0']);
    const victim = await at.start({ faults: [{ at: point, act: 'kill' }] });
    await at.taken();
    const [row] = await rowsOf(at);
    assert.ok(row);
    assert.equal(await retryOne(row.id, victim), null);
    assert.equal(await victim.died(), 'SIGKILL');
    const heir = await at.start();
    await untilReaped(at);
    return { at, id: row.id, api: createApiClient(heir.url) };
  }
  const retry = async ({ api, id }: Left): Promise<void> => {
    assert.equal((await api.post(`/api/v1/dlq/messages/${id}/retry`)).status, 200);
  };
  const sent = async ({ at }: Left): Promise<readonly (string | undefined)[]> =>
    (await readAll(at.broker, at.originalTopic)).map(({ value }) => value?.toString());

  it('after it was sent is not edited, and only one version is ever sent', async (t) => {
    const left = await killedAt(t, 'published');
    const [first] = await sent(left);
    const refused = assertError(await tryEdit(left.api, left.id, { value: 'corrected' }), 409);
    assert.equal(refused.details[0]?.reason, 'in_doubt');
    await retry(left);
    assert.deepEqual(await sent(left), [first, first]);
  });

  it('before it was sent is edited only if it may be sent twice', async (t) => {
    const left = await killedAt(t, 'claimed');
    assertError(await tryEdit(left.api, left.id, { value: 'corrected' }), 409);
    await edit(left.api, left.id, { value: 'corrected', may_send_twice: true });
    await retry(left);
    assert.deepEqual(await sent(left), ['corrected']);
  });
});
