import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startReplica, type Replica } from './start-replica.ts';

/** A real server with the heap that docs/operations.md and `npm start` give it, and a database of its own. */
export type SmallHeap = Readonly<{
  db: Database;
  server: Replica;
  /** Fails unless the process is alive and answers one of three probes within a second. */
  isWell(): Promise<void>;
  /** The most memory that it has ever had, in MB. */
  peakMb(): number;
}>;

const documentedHeap = '--max-semi-space-size=8 --max-old-space-size=256';

export async function startSmallHeap(
  t: TestContext,
  env: Readonly<Record<string, string>> = {},
): Promise<SmallHeap> {
  const { url, db, drop } = await createTestDatabase();
  t.after(drop);
  const server = await startReplica({
    DATABASE_URL: url,
    KAFKA_ENABLED: 'false',
    LOG_LEVEL: 'error',
    NODE_OPTIONS: documentedHeap,
    ...env,
  });
  t.after(() => server.kill());
  const peakMb = (): number => {
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    return Math.round(Number(/VmHWM:\s*(\d+)/.exec(status)?.[1]) / 1024);
  };
  return {
    db,
    server,
    peakMb,
    async isWell() {
      const probe = (): Promise<Response> =>
        fetch(`${server.url}/healthz`, { signal: AbortSignal.timeout(1000) });
      const answer = await probe().catch(probe).catch(probe);
      assert.equal(answer.status, 200, server.log());
    },
  };
}

/** Posts JSON text as it is; null when the process died of it. */
export async function postText(
  url: string,
  text: string,
): Promise<Readonly<{ status: number; body: string }> | null> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: text,
    });
    return { status: answer.status, body: await answer.text() };
  } catch {
    return null;
  }
}

const statusLine = Buffer.from('HTTP/1.1 200 ');

/** Sends all of it on one connection without waiting for an answer; returns all that came until `isEnough`. */
export function pipeline(
  url: string,
  requests: string,
  isEnough: (received: Readonly<{ bytes: number; answers: number }>) => boolean,
): Promise<Readonly<{ bytes: number; answers: number }>> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    const received = { bytes: 0, answers: 0 };
    socket.on('data', (chunk: Buffer) => {
      received.bytes += chunk.length;
      for (let at = chunk.indexOf(statusLine); at !== -1; at = chunk.indexOf(statusLine, at + 1))
        received.answers += 1;
      if (isEnough(received)) socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
    socket.write(requests);
  });
}

/** A target for pushes and orders that answers 200 and keeps the sizes of what it got. */
export async function startSink(t: TestContext): Promise<Readonly<{ url: string; sizes: number[] }>> {
  const sizes: number[] = [];
  const server = createServer((request, response) => {
    let size = 0;
    request.on('data', (chunk: Buffer) => (size += chunk.length));
    request.on('end', () => {
      sizes.push(size);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, sizes };
}
