import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PayloadRequest } from '../read-payload.ts';
import { createPayloadRoom } from './payload-room.ts';

const mebibyte = 1024 * 1024;
const job: PayloadRequest = { jobId: 'a', lease: { owner: 'me', epoch: 1n, endsAtMs: Infinity } };

function readsOf(bytes: number): Parameters<typeof createPayloadRoom>[0] {
  return { bytes: async () => bytes, payload: async () => ({ payload: '{}' }) };
}

test('each queue has its share of the memory, and a payload larger than that is read alone', async () => {
  const hanging = createPayloadRoom(readsOf(9 * mebibyte), 2);
  const first = await hanging(job);
  let isSecond = false;
  const second = hanging(job).then((read) => {
    isSecond = true;
    return read;
  });
  const other = createPayloadRoom(readsOf(4 * mebibyte), 2);
  assert.ok((await other(job)) !== null && (await other(job)) !== null, 'the other queue has its own share');
  assert.equal(isSecond, false);
  assert.ok(first !== null && 'release' in first);
  first.release?.();
  assert.ok((await second) !== null);
});
