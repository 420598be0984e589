import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { pipeline, postText, startSmallHeap, type SmallHeap } from './support/small-heap.ts';

/** A dead letter with a record of so many bytes; the path of its raw record. */
async function storeRecord(db: Database, bytes: number): Promise<string> {
  const id = randomUUID();
  await db.query(sql`
    INSERT INTO dlq.dlq_messages
      (id, original_topic, error_message, status, payload, raw_value, source_topic, source_partition, source_offset)
    VALUES (${id}, 'orders', 'failed', 'PENDING', NULL, convert_to(repeat('x', ${bytes}), 'UTF8'), 'orders.dlq', 0, 1)`);
  return `/api/v1/dlq/messages/${id}/raw`;
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

/** The most that the process takes, whatever is asked of it: the heap, and buffers beside it. */
const mostMb = 480;

async function isBounded(t: TestContext, { isWell, peakMb }: SmallHeap): Promise<void> {
  await isWell();
  t.diagnostic(`peak ${peakMb()} MB`);
  assert.ok(peakMb() < mostMb, `${peakMb()} MB`);
}

describe('A server with the documented heap lives through', { concurrency: false }, () => {
  it('150 pipelined requests for a record of 900 kB on one connection', async (t) => {
    const small = await startSmallHeap(t, { ROLES: 'api' });
    const path = await storeRecord(small.db, 900_000);
    const all = pipeline(small.server.url, get(path).repeat(150), ({ bytes }) => bytes > 150 * 2_100_000);
    await small.isWell();
    const { answers } = await all;
    assert.equal(answers, 150, small.server.log());
    await isBounded(t, small);
  });

  it('clients that ask for much and read none of it', async (t) => {
    const small = await startSmallHeap(t, { ROLES: 'api' });
    const path = await storeRecord(small.db, 8_000_000);
    const { hostname, port } = new URL(small.server.url);
    const sockets = Array.from({ length: 60 }, () => {
      const socket = connect(Number(port), hostname).on('error', () => {});
      socket.pause();
      socket.write(get(path).repeat(5));
      return socket;
    });
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    const refused = await fetch(`${small.server.url}${path}`);
    assert.equal(refused.status, 503, 'those who came first hold all the room');
    assert.equal(refused.headers.get('retry-after'), '1');
    await isBounded(t, small);
  });

  it('30 parallel claims of a hundred jobs of 1 MB', async (t) => {
    const small = await startSmallHeap(t);
    await small.db.query(sql`
      SELECT count(jobs.enqueue('mail', to_jsonb(repeat('x', 1000000)))) FROM generate_series(1, 150)`);
    const claim = JSON.stringify({ worker: 'w', limit: 100, lease_seconds: 60 });
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => postText(`${small.server.url}/api/v1/jobs/queues/mail/claim`, claim)),
    );
    const given = answers.map((answer) => {
      assert.ok(answer !== null, small.server.log());
      assert.ok(answer.status === 200 || answer.status === 503, answer.body.slice(0, 300));
      if (answer.status === 503) return [];
      assert.ok(answer.body.length < 4_400_000, String(answer.body.length));
      return (JSON.parse(answer.body) as { jobs: { job_id: string }[] }).jobs.map(({ job_id: id }) => id);
    });
    const ids = given.flat();
    t.diagnostic(`${ids.length} jobs, ${answers.filter((answer) => answer?.status === 503).length} refused`);
    assert.ok(ids.length > 0);
    assert.equal(new Set(ids).size, ids.length);
    const [running] = await small.db.query<{ count: bigint }>(sql`
      SELECT count(*) AS count FROM jobs.job_queue WHERE status = 'running'`);
    assert.equal(running?.count, BigInt(ids.length), 'nobody holds a job that was not given to a client');
    await isBounded(t, small);
  });

  it('forty posts of a megabyte at once, and others that never end', async (t) => {
    const small = await startSmallHeap(t);
    const { hostname, port } = new URL(small.server.url);
    const half = connect(Number(port), hostname).on('error', () => {});
    t.after(() => half.destroy());
    half.write('POST /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n');
    half.write(`content-length: 1000000\r\n\r\n${'x'.repeat(500_000)}`);
    const body = JSON.stringify({ queue: 'mail', payload: 'x'.repeat(1_000_000) });
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => postText(`${small.server.url}/api/v1/jobs`, body)),
    );
    for (const answer of answers) {
      assert.ok(answer !== null, small.server.log());
      assert.ok(answer.status === 202 || answer.status === 503, answer.body.slice(0, 300));
    }
    await isBounded(t, small);
  });

  it('records that are as large as any that is shown, and refuses larger ones', async (t) => {
    const small = await startSmallHeap(t, { ROLES: 'api' });
    const [large, tooLarge] = [
      await storeRecord(small.db, 24_000_000),
      await storeRecord(small.db, 100_000_000),
    ];
    const answers = await Promise.all(
      [large, large, large, tooLarge].map((path) => fetch(`${small.server.url}${path}`)),
    );
    const statuses = answers.map(({ status }) => status);
    assert.ok(
      statuses.slice(0, 3).every((status) => status === 200 || status === 503) && statuses.includes(200),
    );
    assert.equal(statuses[3], 413);
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
    await small.isWell();
    t.diagnostic(`peak ${small.peakMb()} MB`);
  });
});
