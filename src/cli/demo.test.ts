import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { loadConfig, type Config } from '../config/config.ts';
import { openFulfilment, openSummarizer, openTradingPartner, shopPolicies } from './demo.ts';

function configWith(env: NodeJS.ProcessEnv): Config {
  return loadConfig({ env: { KAFKA_LOCAL: 'true', ...env }, secretsDir: '/nonexistent' });
}

function dataDir(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-demo-'));
  context.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('the demo broker listens and its destinations are a valid configuration', async (t) => {
  const folder = dataDir(t);
  const partner = await openTradingPartner(configWith({ DATABASE_DATA_DIR: folder }));
  assert.ok(partner);
  t.after(() => partner.close());
  assert.equal((await fetch(partner.url)).status, 200);
  const { outbox, warnings } = configWith({ OUTBOX_DESTINATIONS: JSON.stringify(partner.destinations) });
  assert.deepEqual(
    outbox.destinations.map(({ name, type }) => [name, type]),
    [
      ['broker', 'http'],
      ['orders_topic', 'kafka'],
    ],
  );
  assert.deepEqual(warnings, []);
});

test('nothing is written to the data folder before the database exists', async (t) => {
  const folder = dataDir(t);
  const partner = await openTradingPartner(configWith({ DATABASE_DATA_DIR: folder }));
  await partner?.close();
  assert.deepEqual(readdirSync(folder), []);
  const notMade = join(folder, 'not-made-yet');
  await (await openTradingPartner(configWith({ DATABASE_DATA_DIR: notMade })))?.close();
  assert.equal(existsSync(notMade), false);
});

const elsewhere: Readonly<Record<string, NodeJS.ProcessEnv>> = {
  'own destinations': {
    OUTBOX_DESTINATIONS: '{"broker":{"type":"http","url":"http://127.0.0.1:9/orders"}}',
  },
  'a shared database': { DATABASE_URL: 'postgres://app@127.0.0.1/redrive' },
  'a real Kafka': { KAFKA_LOCAL: '', KAFKA_BROKERS: '127.0.0.1:9092' },
  'no Kafka': { KAFKA_LOCAL: '', KAFKA_ENABLED: 'false' },
  'no API in this process': { ROLES: 'workers,ingest' },
  'no workers in this process': { ROLES: 'api' },
};

for (const [what, env] of Object.entries(elsewhere)) {
  test(`there is no demo broker with ${what}`, async () => {
    assert.equal(await openTradingPartner(configWith(env)), null);
  });
}

test('the retry policies of the demo shop are a valid configuration', () => {
  const { dlq, warnings } = configWith({ DLQ_AUTO_RETRY: JSON.stringify(shopPolicies) });
  assert.deepEqual(
    dlq.autoRetry.map(({ name, delayMs }) => [name, delayMs]),
    [['bank', 30_000]],
  );
  assert.deepEqual(warnings, []);
});

test('the queues and the schedule of the demo summarizer are a valid configuration', async (t) => {
  const summarizer = await openSummarizer(configWith({ DATABASE_DATA_DIR: dataDir(t) }));
  assert.ok(summarizer);
  t.after(() => summarizer.close());
  const { jobs, warnings } = configWith({
    JOBS_QUEUES: JSON.stringify(summarizer.queues),
    JOBS_CRON: JSON.stringify(summarizer.schedules),
  });
  assert.deepEqual(
    jobs.queues.map(({ name, target }) => [name, target !== null]),
    [
      ['summarize', true],
      ['digest', true],
    ],
  );
  assert.deepEqual(
    jobs.cron.map(({ name, queue }) => [name, queue]),
    [['minute-digest', 'digest']],
  );
  assert.deepEqual(warnings, []);
});

const notHere: Readonly<Record<string, NodeJS.ProcessEnv>> = {
  'own queues': { JOBS_QUEUES: '{"mail":{}}' },
  'a shared database': { DATABASE_URL: 'postgres://app@127.0.0.1/redrive' },
  'no API in this process': { ROLES: 'workers,ingest' },
  'no workers in this process': { ROLES: 'api' },
};

for (const [what, env] of Object.entries(notHere)) {
  test(`there is no demo summarizer with ${what}`, async () => {
    assert.equal(await openSummarizer(configWith(env)), null);
  });
}

test('the demo services are a valid configuration', async (t) => {
  const fulfilment = await openFulfilment(configWith({ DATABASE_DATA_DIR: dataDir(t) }));
  assert.ok(fulfilment);
  t.after(() => fulfilment.close());
  const { services, warnings } = configWith({ SERVICES: JSON.stringify(fulfilment.services) });
  assert.deepEqual(
    services.map(({ name, type }) => [name, type]),
    [
      ['inventory', 'http'],
      ['payment', 'http'],
      ['shipping', 'http'],
    ],
  );
  assert.deepEqual(warnings, []);
});

test('there are no demo services if services are configured', async () => {
  const own = { SERVICES: '{"shop":{"type":"http","base_url":"http://127.0.0.1:9"}}' };
  assert.equal(await openFulfilment(configWith(own)), null);
});
