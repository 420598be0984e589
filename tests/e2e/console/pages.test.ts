import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { readFirstPaints } from '../../../console/tools/first-paint.ts';
import { buildConsole } from '../../../src/console/assets/build-console.ts';
import { createConsoleBuild } from '../../../src/console/assets/console-build.ts';
import { addAssetRoutes } from '../../../src/console/assets/asset-routes.ts';
import { assertError } from '../../support/api-client.ts';
import { eventually } from '../../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../../support/start-system.ts';
import { createTestServer } from '../../support/test-server.ts';

let system: TestSystem;
let page: string;
before(async () => {
  system = await startTestSystem({
    env: {
      SERVER_PUBLIC_URL: 'https://tools.example.com/ops/redrive/',
      SERVER_ALLOWED_HOSTS: '127.0.0.1',
    },
  });
  page = await eventually(
    async () => {
      const answer = await system.api.get('/');
      assert.equal(answer.status, 200, answer.text);
      return answer.text;
    },
    { withinMs: 60_000 },
  );
});
after(() => system.drop());

test('every page of the console is the same document, and is never stored', async () => {
  for (const path of ['/', '/inbox', '/dlq/messages/x?peek=1', '/sagas', '/system']) {
    const { status, headers, text } = await system.api.get(path, { accept: 'text/html' });
    assert.equal(status, 200, path);
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('x-robots-tag'), 'noindex');
    assert.match(text, /"prefix":"\/ops\/redrive"/);
  }
});

test('the policy allows nothing but the files of the server, and styles with the nonce of this answer', async () => {
  const [one, two] = await Promise.all([system.api.get('/inbox'), system.api.get('/inbox')]);
  const nonceOf = (text: string): string | undefined => /csp-nonce" nonce="([^"]+)"/.exec(text)?.[1];
  const nonce = nonceOf(one.text);
  assert.ok(nonce !== undefined && nonce !== nonceOf(two.text));
  const policy = one.headers.get('content-security-policy') ?? '';
  assert.ok(policy.includes(`style-src 'self' 'nonce-${nonce}'`), policy);
  assert.match(policy, /default-src 'none'.*script-src 'self';/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.doesNotMatch(one.text, /https?:\/\/(?!www\.w3\.org)/);
});

test('other unknown paths stay errors in JSON', async () => {
  for (const path of [
    '/nowhere',
    '/dlqx',
    '/api/v1/nowhere',
    '/assets/nothing.js',
    '/assets/..%2fmanifest.json',
  ])
    assertError(await system.api.get(path, { accept: 'text/html' }), 404);
});

test('files are immutable, and compressed as the client asks', async () => {
  const paths = [...page.matchAll(/(?:src|href)="\/ops\/redrive(\/assets\/[^"]+)"/g)].map(([, path]) => path);
  assert.ok(paths.length >= 2, page);
  for (const path of paths) {
    const answer = await fetch(system.url + path, { headers: { 'accept-encoding': 'br' } });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('content-encoding'), 'br');
    assert.equal(answer.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
    const plain = await fetch(system.url + path, { headers: { 'accept-encoding': 'identity' } });
    assert.equal(await plain.text(), await answer.text());
  }
});

test('what a browser loads before it shows a page is within the budget', async () => {
  const pages = await readFirstPaints(await buildConsole());
  assert.ok(pages.length >= 20 && pages.some(({ page }) => page.includes('inbox')));
  const tooLarge = pages.filter(({ script, style }) => script > 190_000 || style > 20_000);
  assert.deepEqual(tooLarge, []);
});

describe('without a build', () => {
  const facts = { prefix: '', environment: 'test', login: null };

  test('the page says why, and that the API works', async () => {
    const { server } = createTestServer({ hasConsole: true });
    const build = createConsoleBuild(server.app.log, () => Promise.reject(new Error('<no> such module')));
    server.addRoutes('console', (app) => addAssetRoutes(app, { state: build.state, facts }));
    const waiting = await server.app.inject('/');
    assert.equal(waiting.statusCode, 503);
    assert.match(waiting.body, /Building the console.*http-equiv="refresh"|http-equiv="refresh"[^]*Building/);
    await build.start();
    await eventually(async () => {
      const failed = await server.app.inject('/inbox');
      assert.equal(failed.statusCode, 503);
      assert.match(failed.body, /&#60;no&#62; such module[^]*\/docs\//);
    });
    await build.stop(AbortSignal.timeout(1000));
  });
});
