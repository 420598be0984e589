import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isOpen, type PushCircuit } from '../domain/push-circuit.ts';
import type { ClaimedJob } from '../claim-jobs.ts';
import { createPushGate, type PushGate } from './push-gate.ts';

/** The shared circuit and its clock. */
type Shared = { circuit: PushCircuit | null; nowMs: number; changes: number };

function jobOf(jobId: string, epoch = 1n): ClaimedJob {
  return {
    jobId,
    queue: 'push',
    payload: '{}',
    isPayloadApart: false,
    retryCount: 0,
    maxRetries: 3,
    deferrals: 0,
    trace: null,
    lease: { owner: 'me', epoch, endsAtMs: Infinity },
    claimedAtMs: 0,
    dueForMs: 0,
  };
}

type Process = Readonly<{ gate: PushGate; hear: () => void }>;

/** A process knows the circuit that it has changed, and after `hear`. */
function startProcess(shared: Shared, job = jobOf('probe')): Process {
  let known: PushCircuit | null = null;
  const gate = createPushGate({
    claim: async () => ({ jobs: [job], last: null }),
    clock: { monotonicMs: () => shared.nowMs },
    known: () => known,
    async change(decide) {
      const before = shared.circuit;
      shared.changes += 1;
      known = shared.circuit = decide(before, shared.nowMs);
      return { before, after: known };
    },
    probeMs: () => 5000,
    onChange: () => {},
    onError: (error) => assert.fail(String(error)),
  });
  return { gate, hear: () => void (known = shared.circuit) };
}

const unreachable = { reason: 'no route', isUnreachable: true } as const;
const options = { queue: 'push', limit: 4, leaseMs: 1 } as const;

async function failThrice({ gate }: Process): Promise<boolean> {
  await gate.noteDown(jobOf('a'), unreachable);
  await gate.noteDown(jobOf('b'), unreachable);
  return gate.noteDown(jobOf('a'), unreachable);
}

test('a process without a route does not keep the circuit open while another one is answered', async () => {
  const shared: Shared = { circuit: null, nowMs: 10_000, changes: 0 };
  const [routeless, healthy] = [startProcess(shared), startProcess(shared)];
  await healthy.gate.noteContact(jobOf('c'), () => 5);
  shared.nowMs += 500;
  assert.ok(await failThrice(routeless));
  shared.nowMs += 600;
  await healthy.gate.noteContact(jobOf('d'), () => 5000);
  assert.ok(isOpen(shared.circuit), 'a call that began before says nothing about the time since');
  await healthy.gate.noteContact(jobOf('e'), () => 100);
  assert.equal(shared.circuit, null);
});

test('a process whose calls succeed reads the circuit once a second', async () => {
  const shared: Shared = { circuit: null, nowMs: 10_000, changes: 0 };
  const healthy = startProcess(shared);
  for (let call = 0; call < 30; call += 1, shared.nowMs += 100)
    await healthy.gate.noteContact(jobOf('a'), () => 5);
  assert.equal(shared.changes, 3);
});

test('a success between failures ends the streak, whichever process has noted them', async () => {
  const shared: Shared = { circuit: null, nowMs: 10_000, changes: 0 };
  const [other, mixed] = [startProcess(shared), startProcess(shared)];
  await mixed.gate.noteContact(jobOf('x'), () => 5);
  shared.nowMs += 1;
  await other.gate.noteDown(jobOf('a'), unreachable);
  await other.gate.noteDown(jobOf('b'), unreachable);
  shared.nowMs += 1;
  await mixed.gate.noteContact(jobOf('c'), () => 1);
  shared.nowMs += 1;
  assert.equal(await mixed.gate.noteDown(jobOf('d'), unreachable), false);
  assert.equal(shared.circuit?.failures, 1);
});

test('only the last claim that was made for a probe is a probe', async () => {
  const shared: Shared = { circuit: null, nowMs: 10_000, changes: 0 };
  const process = startProcess(shared, jobOf('probe', 7n));
  assert.ok(await failThrice(process));
  shared.nowMs += 1000;
  assert.equal((await process.gate.claim(options)).jobs.length, 1);
  const before = shared.circuit;
  await process.gate.noteDown(jobOf('probe', 6n), unreachable);
  assert.equal(shared.circuit, before, 'an earlier claim of the same job is no probe');
  await process.gate.noteDown(jobOf('probe', 7n), unreachable);
  assert.equal(shared.circuit?.intervalMs, 2000);
  await process.gate.noteDown(jobOf('probe', 7n), unreachable);
  assert.equal(shared.circuit?.intervalMs, 2000, 'it was one once');
});
