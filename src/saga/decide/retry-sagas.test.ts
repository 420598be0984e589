import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../kernel/clock.ts';
import { createLogger } from '../../platform/telemetry/logger.ts';
import { retryFound } from './retry-sagas.ts';

const by = { actor: 'ann', reason: 'it is back' };
const outage = Object.assign(new Error('the database is unavailable'), { code: 'ECONNREFUSED' });

/** Retries a hundred sagas, one of which fails with this error. */
function retryHundred(failing: string, failure: Error) {
  const seen: string[] = [];
  const retried: string[] = [];
  const logged: unknown[] = [];
  const log = createLogger({
    service: 'test',
    version: '0',
    environment: 'test',
    level: 'info',
    stream: {
      write(line) {
        const { saga_id, err, retried: count, skipped } = JSON.parse(line);
        logged.push(err === undefined ? [count, skipped] : [saga_id, err.message]);
      },
    },
  });
  const sagas = Array.from({ length: 100 }, (_, i) => ({ sagaId: `s${i}`, stepName: 'reserve', epoch: 1n }));
  const answer = retryFound(
    {
      async retry({ sagaId }) {
        seen.push(sagaId);
        await new Promise(setImmediate);
        if (sagaId === failing) throw failure;
        retried.push(sagaId);
        return null;
      },
      clock: systemClock,
      log,
    },
    { sagas, notRetryable: [], matched: 100, isAll: true },
    { by, untilMs: Number.POSITIVE_INFINITY },
  );
  return { answer, seen, retried, logged };
}

test('a saga that fails is reported as skipped and does not stop the others', async () => {
  const defect = new Error('its definition cannot be read');
  const { answer, logged } = retryHundred('s1', defect);
  assert.deepEqual(await answer, {
    retried: 99,
    skipped: 1,
    skippedSagas: [{ sagaId: 's1', why: 'failed' }],
    remaining: 0,
    isMore: false,
  });
  assert.deepEqual(logged, [
    ['s1', defect.message],
    [99, 1],
  ]);
});

test('an outage stops the retry after the sagas in progress, and what was done is logged', async () => {
  const { answer, seen, retried, logged } = retryHundred('s5', outage);
  await assert.rejects(answer, outage);
  assert.ok(seen.length < 15, String(seen.length));
  assert.deepEqual(logged, [
    ['s5', outage.message],
    [retried.length, 1],
  ]);
  assert.equal(retried.length, seen.length - 1, 'retries in progress are awaited');
});
