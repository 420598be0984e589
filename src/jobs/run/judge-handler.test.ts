import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judgeReturned } from './judge-handler.ts';

const run = {
  job: {
    jobId: '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
    queue: 'mail',
    payload: {},
    isPayloadApart: false,
    retryCount: 0,
    maxRetries: 3,
    deferrals: 0,
    trace: null,
    lease: { owner: 'worker', epoch: 1n, endsAtMs: 1000 },
    claimedAtMs: 0,
    dueForMs: 0,
  },
  ran: { waitedMs: 0, ms: 1 },
};

function resultOf(returned: unknown): string | null {
  const settlement = judgeReturned(run, returned);
  assert.equal(settlement.outcome, 'completed');
  return settlement.result;
}

test('a returned value is stored as JSON', () => {
  assert.equal(resultOf({ id: 7 }), '{"id":7}');
  assert.equal(resultOf('a\0b'), '"a\uFFFDb"');
});

test('a returned value that is not JSON or takes more than 1 MiB is dropped, and the job is completed', () => {
  for (const value of [undefined, () => 1, { n: 1n }, 'x'.repeat(1024 * 1024)])
    assert.equal(resultOf(value), null);
  // 35 kB as it is sent, 1.5 MB as PostgreSQL writes it.
  assert.equal(resultOf(Array(5000).fill(1e308)), null);
  assert.notEqual(resultOf(Array(1000).fill(1e308)), null);
});
