import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../platform/telemetry/logger.ts';
import { load, problemOf } from '../../tests/support/test-config.ts';
import { stopSystem, stopWithin } from './stop-system.ts';

const logger = createLogger({ service: 'test', version: '0', environment: 'test', level: 'silent' });

test('services get 11 of the 15 s that a process has to stop by default, and the shortest time leaves them one', () => {
  assert.equal(stopWithin(load({}).server.shutdownTimeoutMs), 11_000);
  const env = (time: string) => ({ SERVER_SHUTDOWN_TIMEOUT: time });
  assert.equal(stopWithin(load({ env: env('5s') }).server.shutdownTimeoutMs), 1000);
  assert.equal(problemOf(() => load({ env: env('4s') })).path, 'server.shutdown_timeout');
});

test('a service that does not stop in its time does not keep connections from being closed', async () => {
  const closed: string[] = [];
  const hanging = { name: 'hanging', start: async () => {}, stop: () => new Promise<void>(() => {}) };
  const open = (name: string) => async () => void closed.push(name);
  await stopSystem({ services: [hanging], opened: [open('first'), open('last')], logger, stopWithinMs: 1 });
  assert.deepEqual(closed, ['last', 'first']);
});
