import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { whyNoKafka } from './kafka-for-tests.ts';

const script = `
  import { startKafka } from ${JSON.stringify(new URL('start-kafka.ts', import.meta.url).href)};
  console.log((await startKafka()).brokers);
  setInterval(() => {}, 1000);
`;

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

test(
  'Kafka ends with the process that started it, even when that is killed',
  { skip: await whyNoKafka() },
  async () => {
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [brokers] = (await once(createInterface(parent.stdout), 'line')) as [string];
    const port = Number(brokers.split(':')[1]);
    assert.equal(await isOpen(port), true);
    parent.kill('SIGKILL');
    const giveUpAt = performance.now() + 10_000;
    while ((await isOpen(port)) && performance.now() < giveUpAt) await wait(50);
    assert.equal(await isOpen(port), false);
  },
);
