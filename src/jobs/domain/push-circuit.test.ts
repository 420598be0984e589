import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isOpen,
  noteContact,
  noteDown,
  returnProbe,
  sinceContact,
  takeProbe,
  type OpenCircuit,
  type PushCircuit,
} from './push-circuit.ts';

type Call = Readonly<{ job: string; atMs?: number; isUnreachable?: boolean }>;

/** The circuit after these failures in a row. */
function after(calls: readonly Call[]): PushCircuit | null {
  return calls.reduce<PushCircuit | null>(
    (circuit, { job: jobId, atMs = 0, isUnreachable = false }) =>
      noteDown(circuit, { jobId, reason: 'no', isUnreachable, isProbe: false }, atMs),
    null,
  );
}

function opened(): OpenCircuit {
  const circuit = after(['a', 'b', 'a'].map((job) => ({ job, isUnreachable: true })));
  assert.ok(isOpen(circuit));
  return circuit;
}

const jobsOf = (text: string, isUnreachable: boolean): readonly Call[] =>
  text.split('').map((job) => ({ job, isUnreachable }));

test('it opens on failures of several jobs, sooner where none was answered', () => {
  for (const [text, isUnreachable, opens] of [
    ['ab', true, false],
    ['aba', true, true],
    ['aaaaaaaa', true, false],
    ['abab', false, false],
    ['ababab', false, false],
    ['abca', false, false],
    ['abcab', false, true],
  ] as const)
    assert.equal(isOpen(after(jobsOf(text, isUnreachable))), opens, `${text} ${isUnreachable}`);
  assert.equal(isOpen(after([...jobsOf('ab', true), ...jobsOf('ab', false)])), false);
});

test('one job alone opens it after five failures over a minute, not before', () => {
  const at = (times: readonly number[]): PushCircuit | null =>
    after(times.map((atMs) => ({ job: 'a', atMs })));
  assert.equal(isOpen(at([0, 1000, 2000, 3000, 59_999])), false);
  assert.equal(isOpen(at([0, 20_000, 60_000])), false);
  assert.equal(isOpen(at([0, 10_000, 20_000, 40_000, 60_000])), true);
});

test('any answer about a job ends the streak', () => {
  assert.equal(noteContact(after(jobsOf('ab', true)), { isProbe: false, startedAtMs: -9 }), null);
  const row = after([{ job: 'a', atMs: 10 }]);
  assert.equal(sinceContact(row, 11), null);
  assert.equal(sinceContact(row, 9), row);
  assert.equal(sinceContact(opened(), 11)?.openedAtMs, 0, 'an open circuit stays');
});

test('an open circuit is changed only by a probe, or by the answer to a call that started since', () => {
  const circuit = opened();
  assert.equal(noteContact(circuit, { isProbe: false, startedAtMs: 0 }), circuit);
  assert.equal(noteContact(circuit, { isProbe: false, startedAtMs: 1 }), null);
  const late = { jobId: 'z', reason: 'late', isUnreachable: true, isProbe: false };
  assert.equal(noteDown(circuit, late, 5), circuit);
  assert.equal(noteContact(circuit, { isProbe: true, startedAtMs: 0 }), null);
});

test('probes come one at a time, each after twice the interval up to half a minute', () => {
  let circuit: PushCircuit = opened();
  const waits: number[] = [];
  for (let nowMs = circuit.nextProbeAtMs, probe = 0; probe < 7; probe += 1, nowMs = circuit.nextProbeAtMs) {
    assert.ok(isOpen(circuit));
    assert.equal(takeProbe(circuit, nowMs - 1, 10_000), circuit, 'not due');
    const taken: PushCircuit = takeProbe(circuit, nowMs, 10_000);
    assert.ok(isOpen(taken) && taken.nextProbeAtMs >= nowMs + 10_000);
    assert.equal(takeProbe(taken, nowMs + 1, 10_000), taken, 'the probe is taken');
    circuit = noteDown(taken, { jobId: 'p', reason: 'still', isUnreachable: true, isProbe: true }, nowMs);
    waits.push(circuit.nextProbeAtMs - nowMs);
  }
  assert.deepEqual(waits, [2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  assert.equal(returnProbe(circuit, 100)?.nextProbeAtMs, 30_100);
  assert.equal(returnProbe(null, 100), null);
});
