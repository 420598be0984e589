import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startAll, stopAll, type Service } from './service.ts';

function service(name: string, log: string[], more: Partial<Service> = {}): Service {
  return {
    name,
    start: async () => void log.push(`+${name}`),
    stop: async () => void log.push(`-${name}`),
    ...more,
  };
}

test('services start in order and stop in reverse', async () => {
  const log: string[] = [];
  const services = [service('a', log), service('b', log)];
  await startAll(services, 1000);
  await stopAll(services, 1000);
  assert.deepEqual(log, ['+a', '+b', '-b', '-a']);
});

test('when one fails to start, those before it are stopped and the failure is thrown', async () => {
  const log: string[] = [];
  const broken = service('b', log, { start: () => Promise.reject(new Error('no port')) });
  await assert.rejects(startAll([service('a', log), broken, service('c', log)], 1000), /no port/);
  assert.deepEqual(log, ['+a', '-a']);
});

test('one that hangs or fails at its stop keeps neither the others nor the process running', async () => {
  const log: string[] = [];
  const hanging = service('b', log, { stop: () => new Promise<void>(() => {}) });
  const failing = service('c', log, { stop: () => Promise.reject(new Error('no')) });
  const failures: string[] = [];
  await stopAll([service('a', log), hanging, failing], 20, ({ name }) => failures.push(name));
  assert.deepEqual(failures, ['c']);
  assert.deepEqual(log, ['-a']);
});
