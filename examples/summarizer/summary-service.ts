import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { sleep } from '../../src/kernel/clock.ts';
import { kindOf, summaryOf, type Article } from './articles.ts';

/** A summariser over HTTP: a real server, with the failings of a real one. */
export type SummaryService = Readonly<{
  /** Where Redrive pushes its jobs. */
  url: string;
  /** The same for the jobs that a schedule adds: how many articles were summarised since the last one. */
  digestUrl: string;
  /** From now on long reads are summarised, too. */
  learnLongReads(): void;
  close(): Promise<void>;
}>;

export type SummaryServiceOptions = Readonly<{
  /** So many articles at once; who brings more is told to come later. */
  capacity?: number;
  /** How long it reads. */
  readMs?: number;
}>;

/** What Redrive posts. */
type Pushed = Readonly<{ job_id: string; payload: Article; attempt: number }>;

/** `silence`: it reads and reads, until whoever asked hangs up. */
type Reply =
  | Readonly<{ status: number; body: object; headers?: Readonly<Record<string, string>> }>
  | 'silence';

/** One article in so many makes it stumble once. */
const stumblesEvery = 7;

export async function startSummaryService(options: SummaryServiceOptions = {}): Promise<SummaryService> {
  const { capacity = 3, readMs = 150 } = options;
  let canLongReads = false;
  let reading = 0;
  let begun = 0;
  let sinceDigest = 0;

  const digest = (): Reply => {
    const articles = sinceDigest;
    sinceDigest = 0;
    return { status: 200, body: { articles } };
  };

  const summarize = async (article: Article, attempt: number): Promise<Reply> => {
    if (kindOf(article.article_id) === 'withdrawn') return refuse(404, 'this article was withdrawn');
    if (kindOf(article.article_id) === 'long-read' && !canLongReads) return 'silence';
    if (reading >= capacity)
      return { ...refuse(429, `no more than ${capacity} at once, please`), headers: { 'retry-after': '1' } };
    reading += 1;
    await sleep(readMs);
    reading -= 1;
    if (attempt === 1) begun += 1;
    if (attempt === 1 && begun % stumblesEvery === 0) return refuse(500, 'something went wrong here');
    sinceDigest += 1;
    return { status: 200, body: { article_id: article.article_id, ...summaryOf(article) } };
  };

  const server = createServer((request, response) => {
    read(request)
      .then(({ payload, attempt }) => (request.url === '/digest' ? digest() : summarize(payload, attempt)))
      .then(
        (reply) => send(response, reply),
        (error: unknown) => send(response, refuse(400, String(error))),
      );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${base}/summarize`,
    digestUrl: `${base}/digest`,
    learnLongReads: () => void (canLongReads = true),
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function read(request: IncomingMessage): Promise<Pushed> {
  return JSON.parse(await text(request)) as Pushed;
}

function refuse(status: number, error: string): Readonly<{ status: number; body: object }> {
  return { status, body: { error } };
}

function send(response: ServerResponse, reply: Reply): void {
  if (reply === 'silence') return;
  const { status, body, headers } = reply;
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
