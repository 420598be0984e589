import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from './config.ts';
import { describeConfig } from './describe-config.ts';

const secrets = ['hunter2', 's3cr3t-hook', 'hook-signature', 'bearer-of-bad-news', 'in-the-query'];

test('secrets are hidden wherever they are; the rest is shown with its source', () => {
  const config = loadConfig({
    env: {
      DATABASE_URL: 'postgres://app:hunter2@db.example.com/redrive',
      KAFKA_ENABLED: 'false',
      SERVER_PORT: '9123',
      NOTIFY: JSON.stringify([
        {
          type: 'webhook',
          name: 'pager',
          url: 'https://hooks.example.com/s3cr3t-hook',
          secret: 'hook-signature-of-32-characters-x',
        },
      ]),
      SERVICES: JSON.stringify({
        payment: {
          type: 'http',
          base_url: 'http://127.0.0.1:9300/pay?api=in-the-query',
          headers: { authorization: 'Bearer bearer-of-bad-news' },
        },
      }),
    },
  });
  const settings = describeConfig(config);
  const text = JSON.stringify(settings);
  for (const secret of secrets) assert.ok(!text.includes(secret), `${secret} is shown`);
  const of = (path: string) => settings.find((setting) => setting.path === path);
  assert.deepEqual(of('server.port'), { path: 'server.port', value: '9123', source: 'SERVER_PORT' });
  assert.equal(of('kafka.enabled')?.value, 'false');
  assert.equal(of('services.payment.headers')?.value, null);
  assert.equal(of('services.payment.base_url')?.value, 'http://127.0.0.1:9300');
  assert.equal(of('notify.pager.url')?.value, 'https://hooks.example.com');
  assert.equal(of('dlq.republish_key')?.value, 'original');
  assert.equal(of('database.password')?.value, null);
  assert.equal(of('jobs.retention_ms')?.source, null);
  assert.deepEqual(
    settings.map(({ path }) => path),
    settings.map(({ path }) => path).toSorted(),
  );
});
