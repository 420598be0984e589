import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { loadConfig } from '../../src/config/config.ts';
import { assertError } from '../support/api-client.ts';
import { startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';

/** A server with authentication whose metrics have a port of their own. */
let guarded: GuardedSystem;
let metricsUrl: string;
before(async () => {
  guarded = await startGuardedSystem({ more: { server: { metrics_port: 0 } } });
  metricsUrl = guarded.system.metricsUrl ?? assert.fail('no port for the metrics');
});
after(() => guarded.drop());

test('the metrics are read there without a token, and nothing else is', async () => {
  const answer = await fetch(`${metricsUrl}/metrics`);
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  assert.match(await answer.text(), /^process_cpu_seconds_total /m);
  assert.equal((await fetch(`${metricsUrl}/metrics?x=1`)).status, 200);
  for (const path of ['/', '/healthz', '/readyz', '/openapi.json', '/api/v1/me', '/metrics/', '//metrics'])
    assert.equal((await fetch(`${metricsUrl}${path}`)).status, 404, path);
  for (const method of ['POST', 'DELETE'])
    assert.equal((await fetch(`${metricsUrl}/metrics`, { method })).status, 405, method);
});

test('the port of the API serves them no more, with or without a token', async () => {
  const admin = await guarded.as(['sys_admin']);
  assertError(await admin.get('/metrics'), 404);
  assert.equal((await fetch(`${guarded.system.url}/metrics`)).status, 404);
  const routes = await guarded.system.routes();
  assert.ok(!routes.some(({ path }) => path === '/metrics'));
});

test('without a token /readyz shows the status, and no check', async () => {
  const answer = await fetch(`${guarded.system.url}/readyz`);
  const { status, checks } = (await answer.json()) as { status: string; checks: object };
  assert.deepEqual([status === 'unhealthy', checks], [false, {}]);
});

test('a port that is used twice, or a host without a port, does not start', () => {
  const problemsOf = (env: NodeJS.ProcessEnv): string => {
    try {
      loadConfig({ env, secretsDir: '/nonexistent' });
    } catch (error) {
      if (error instanceof ConfigError) return error.message;
      throw error;
    }
    return '';
  };
  assert.match(
    problemsOf({ SERVER_PORT: '8080', SERVER_METRICS_PORT: '8080' }),
    /server\.metrics_port: is server\.port/,
  );
  assert.match(problemsOf({ SERVER_METRICS_HOST: '127.0.0.1' }), /server\.metrics_host: is set, but/);
  assert.equal(problemsOf({ SERVER_METRICS_PORT: '9464', SERVER_METRICS_HOST: '0.0.0.0' }), '');
});

test('a port that another process has is named in the error of serve', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  let err = '';
  const silent = { write() {} };
  const stderr = { write: (data: string | Uint8Array): void => void (err += data.toString()) };
  const env = {
    DATABASE_URL: guarded.system.database.url,
    PORT: '0',
    SERVER_METRICS_PORT: String(port),
    LOG_LEVEL: 'silent',
  };
  const code = await runCli(['serve'], { env, stdin: new PassThrough(), stdout: silent, stderr });
  taken.close();
  assert.equal(code, 1, err);
  assert.match(err, new RegExp(`port ${port} of 127\\.0\\.0\\.1 is already in use: .*server\\.metrics_port`));
});
