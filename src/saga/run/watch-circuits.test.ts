import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KnownCircuit } from './circuit-table.ts';
import { createCircuitWatch, type Resumed, type WatchDeps } from './watch-circuits.ts';

/** Circuits and stuck sagas in memory; `done` has what was done with them. */
function scene(more: Partial<WatchDeps> = {}) {
  const done: string[] = [];
  const circuits = new Map<string, KnownCircuit>();
  const stuck = new Set<string>();
  const ends = new Map<string, Resumed>();
  const scripted = { probe: 'none' as 'woken' | 'busy' | 'none' };
  const watch = createCircuitWatch(
    {
      circuits: {
        hasWork: async () => true,
        listCircuits: async () => [...circuits.values()],
        wakeProbe: async () => scripted.probe,
        wakeWaiting: async () => done.push('wake'),
        stuckAt: async (_, { after, limit }) =>
          [...stuck]
            .toSorted()
            .filter((id) => after === null || id > after)
            .slice(0, limit),
        forgetCircuit: async (service) => {
          done.push(`forget ${service}`);
          circuits.delete(service);
        },
        closeCircuit: async (service) => void done.push(`close ${service}`),
        endProbe: async ({ service, sagaId, end }) => void done.push(`${end} ${service} ${sagaId}`),
      },
      serviceOf: (name) => (name.startsWith('unknown') ? undefined : { isIdempotent: true }),
      connect: async () => {},
      async resume(id) {
        const end = ends.get(id) ?? 'resumed';
        done.push(`${end} ${id}`);
        if (end === 'resumed') stuck.delete(id);
        return end;
      },
      onResumed: () => {},
      onError: (what, error) => assert.fail(`${what}: ${String(error)}`),
      ...more,
    },
    { everyMs: 1, idleEveryMs: 1 },
  );
  const put = (service: string, since: string, isOpen: boolean): void =>
    void circuits.set(service, { service, since, isOpen, isProbeDue: isOpen });
  const round = async (): Promise<readonly string[]> => {
    done.length = 0;
    await watch.round();
    return done.filter((line) => line !== 'wake');
  };
  return { done, circuits, stuck, ends, scripted, put, round };
}

test('sagas that became stuck in a second outage are retried after it, whatever their ids', async () => {
  const { stuck, put, round } = scene();
  put('till', '1', false);
  stuck.add('m');
  assert.deepEqual(await round(), ['resumed m']);
  put('till', '2', true);
  await round();
  stuck.add('a');
  put('till', '3', false);
  assert.deepEqual(await round(), ['resumed a']);
  assert.deepEqual(await round(), ['forget till']);
});

test('a locked saga is retried before the circuit is deleted', async () => {
  const { stuck, ends, put, round } = scene();
  put('till', '1', false);
  stuck.add('a').add('b');
  ends.set('a', 'busy');
  assert.deepEqual(await round(), ['busy a', 'resumed b']);
  assert.deepEqual(await round(), []);
  ends.delete('a');
  assert.deepEqual(await round(), ['resumed a']);
  assert.deepEqual(await round(), ['forget till']);
});

test('a saga that stays stuck does not keep the circuit from being deleted', async () => {
  const { stuck, ends, put, round } = scene();
  put('till', '1', false);
  stuck.add('a');
  ends.set('a', 'left');
  assert.deepEqual(await round(), ['left a']);
  assert.deepEqual(await round(), ['forget till']);
});

test('while sagas wait, a connection alone does not close the circuit, even if all of them are busy', async () => {
  const { scripted, put, round } = scene();
  put('till', '1', true);
  scripted.probe = 'busy';
  assert.deepEqual(await round(), []);
  scripted.probe = 'woken';
  assert.deepEqual(await round(), []);
  scripted.probe = 'none';
  assert.deepEqual(await round(), ['close till']);
});

test('services that are not configured here are left to other replicas', async () => {
  const { put, round } = scene();
  put('unknown-open', '1', true);
  put('unknown-closed', '1', false);
  assert.deepEqual(await round(), []);
});

test('sagas whose service is back do not wait for a connection to another service', async () => {
  const seen: string[] = [];
  const { done, put, round } = scene({ connect: async () => void seen.push(...done) });
  put('till', '1', true);
  await round();
  assert.deepEqual(seen, ['wake']);
});
