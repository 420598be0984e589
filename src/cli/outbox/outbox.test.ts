import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { runCli } from '../run-cli.ts';

/** The commands against a server that records requests and returns the test's answers. */

type Asked = Readonly<{ method: string; url: string; key: string | undefined; actor: string; body: string }>;
type Answer = Readonly<{ status?: number; body: string }>;

let folder: string;
let url: string;
let asked: Asked[] = [];
let answers: Answer[] = [];

const server = createServer((request, response) => void answer(request, response));

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { 'idempotency-key': key, 'x-actor': actor } = request.headers;
  asked.push({
    method: request.method ?? '',
    url: request.url ?? '',
    key: key as string | undefined,
    actor: Buffer.from(String(actor), 'latin1').toString(),
    body: await text(request),
  });
  const { status = 200, body } = answers.shift() ?? { status: 500, body: '{}' };
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(body);
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-cli-'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

type Ended = Readonly<{ code: number; out: string; err: string; asked: readonly Asked[] }>;

async function run(
  args: readonly string[],
  { answer = [], stdin = '' }: Readonly<{ answer?: readonly Answer[]; stdin?: string | Buffer }> = {},
): Promise<Ended> {
  asked = [];
  answers = [...answer];
  const said = { out: '', err: '' };
  const into = (stream: 'out' | 'err') => ({
    write: (data: string | Uint8Array): void => void (said[stream] += data.toString()),
  });
  const code = await runCli(['outbox', ...args], {
    env: { REDRIVE_URL: url, USER: 'hanako' },
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: into('out'),
    stderr: into('err'),
  });
  return { code, ...said, asked };
}

const added =
  '{"id":9007199254740993,"idempotency_key":"order-0001","destination":"broker","status":"queued"}';

test('add sends the request unchanged, with its key in the header', async () => {
  const request = '{ "qty": 10000.0, "id": 12345678901234567890, "qty": 1, "注":"\\u6ce8" }';
  const { code, out, err, asked } = await run(
    ['add', '--destination', 'broker', '--key', 'order-0001', '--request', request, '--ordering-key', 'a"b'],
    { answer: [{ status: 201, body: added }] },
  );
  assert.deepEqual([code, out, err], [0, '9007199254740993 queued for broker\n', '']);
  assert.deepEqual(
    asked.map(({ method, url, key, body }) => [method, url, key, body]),
    [
      [
        'POST',
        '/api/v1/outbox/orders',
        'order-0001',
        `{"destination":"broker","idempotency_key":"order-0001","ordering_key":"a\\"b","request":${request}}`,
      ],
    ],
  );
  assert.match(asked[0]?.actor ?? '', /^hanako@/);
});

test('add reads the request from a file and from standard input', async () => {
  const file = join(folder, 'order.json');
  const request = '{"symbol":"USDJPY","qty":1.50}\n';
  await writeFile(file, `\ufeff${request}`);
  for (const [from, stdin] of [
    [file, ''],
    ['-', request],
  ] as const) {
    const { code, asked } = await run(
      ['add', '--key', 'order-0001', '--request-file', from, '--trace-id', 't'],
      {
        answer: [{ status: 201, body: added }],
        stdin,
      },
    );
    assert.equal(code, 0);
    assert.equal(
      asked[0]?.body,
      `{"idempotency_key":"order-0001","trace_id":"t","request":${request}}`,
      from,
    );
  }
});

test('add notes that an order was already added; --json prints only the answer', async () => {
  const args = ['add', '--key', 'order-0001', '--request', '{}'];
  const replayed = await run(args, { answer: [{ status: 200, body: added }] });
  assert.equal(replayed.code, 0);
  assert.match(replayed.err, /^already added; .* run `redrive outbox show 9007199254740993`\n$/);
  const json = await run([...args, '--json'], { answer: [{ status: 200, body: added }] });
  assert.deepEqual([json.out, json.err], [`${added}\n`, '']);
});

const key = ['--key', 'order-0001'];
const wrong: readonly (readonly [what: string, args: readonly string[], error: RegExp])[] = [
  ['no request', ['add', ...key], /the request is missing: give --request or --request-file/],
  ['two requests', ['add', ...key, '--request', '{}', '--request-file', '-'], /cannot be used with/],
  ['no key', ['add', '--request', '{}'], /required option '--key <key>' not specified/],
  ['no JSON', ['add', ...key, '--request', '{a:1}'], /the request is not JSON: /],
  ['JSON and more', ['add', ...key, '--request', '{},"destination":"x"'], /the request is not JSON: /],
  ['JSON that acts on a terminal', ['add', ...key, '--request', '{"a":\u009b31m}'], /not JSON: .*\\u009b/],
  ['a list', ['add', ...key, '--request', '[]'], /the request is not a JSON object/],
  ['null', ['supersede', '1', ...key, '--request', 'null'], /the request is not a JSON object/],
  ['a file that is not there', ['add', ...key, '--request-file', '/nonexistent'], /cannot read .*ENOENT/],
  ['a key with an end of line', ['add', '--key', 'a\nb-000000', '--request', '{}'], /visible ASCII/],
  ['a key beyond ASCII', ['supersede', '1', '--key', '注文-00000001', '--request', '{}'], /visible ASCII/],
  [
    'a status that is none',
    ['list', '--status', 'gone'],
    /Allowed choices are queued, sending, sent, failed, dead/,
  ],
  ['all of one page', ['list', '--all', '--page', '2'], /cannot be used with/],
];

for (const [what, args, error] of wrong)
  test(`${what} is a usage error, and nothing is sent`, async () => {
    const { code, out, err, asked } = await run(args);
    assert.deepEqual([code, out, asked], [2, '', []]);
    assert.match(err, /^redrive: /);
    assert.match(err, error);
  });

test('a request that is not UTF-8 is a usage error', async () => {
  const stdin = Buffer.from('{"a":"\xff"}', 'latin1');
  const { code, err } = await run(['add', ...key, '--request-file', '-'], { stdin });
  assert.deepEqual([code, err], [2, 'redrive: standard input is not UTF-8\n']);
});

test('an error is printed with its code, details and request id', async () => {
  const body = JSON.stringify({
    error: {
      code: 'SYS_OUTBOX_INVALID_REQUEST',
      message: 'the request does not fit\u001b[2J',
      request_id: 'req_1',
      details: [{ field: 'request.qty', reason: 'minimum', message: 'must be > 0' }],
    },
  });
  const { code, out, err } = await run(['add', ...key, '--request', '{"qty":0}'], {
    answer: [{ status: 422, body }],
  });
  assert.deepEqual([code, out], [1, '']);
  assert.equal(
    err,
    'redrive: the request does not fit\\u001b[2J (SYS_OUTBOX_INVALID_REQUEST)\n' +
      '  request.qty: must be > 0\n  request id: req_1\n',
  );
});

const hostile = '\u001b[2J\u202e\n行';
const escaped = '\\u001b[2J\\u202e\\n行';

const order = {
  id: 1042,
  idempotency_key: 'order-0001',
  destination: 'broker',
  status: 'dead',
  retry_count: 8,
  next_attempt_at: null,
  last_error: `UNKNOWN: ${hostile}`,
  ordering_key: hostile,
  ordering_seq: 7,
  held: false,
  trace_id: null,
  first_sent_at: '2026-02-20T10:30:00.000+00:00',
  in_doubt: true,
  resolution: null,
  needs_attention: true,
  supersedes_id: null,
  superseded_by_id: 1043,
  response: { status: 500, digest: 'sha256:00', broker_order_id: hostile },
  request: { text: hostile },
  request_digest: 'sha256:01',
  created_at: '2026-02-20T10:29:00.000+00:00',
  updated_at: '2026-02-20T10:31:00.000+00:00',
  archived: false,
};
const attempts = [
  {
    no: 1,
    started_at: '2026-02-20T10:30:00.000+00:00',
    ended_at: '2026-02-20T10:30:00.250+00:00',
    outcome: 'dead',
    error: hostile,
    outside_id: null,
  },
];
const audit = [
  {
    at: '2026-02-20T10:30:00.250+00:00',
    status_from: 'sending',
    status_to: 'dead',
    retry_count: 8,
    last_error: hostile,
    broker_order_id: null,
    actor: hostile,
    reason: null,
  },
];

/** No control or format characters in the output. */
function assertHarmless({ out, err }: Ended): void {
  assert.doesNotMatch(`${out}${err}`, /(?!\n)\p{Cc}|\p{Cf}/u);
}

test('show prints the order with request, attempts and audit log, and escapes control characters', async () => {
  const answer = [
    { body: JSON.stringify({ ...order, lane: { blocked_by_id: 1040, behind: 12 }, attempts, audit }) },
  ];
  const shown = await run(['show', '1042'], { answer });
  assertHarmless(shown);
  assert.deepEqual([shown.code, shown.err, shown.asked[0]?.url], [0, '', '/api/v1/outbox/orders/1042']);
  const lines = [
    /^id +1042$/m,
    /^status +dead \(in doubt\)$/m,
    /^needs attention +check the receiver, then run redrive outbox supersede or skip with --effect-checked$/m,
    /^superseded by +1043$/m,
    /^blocked by +order 1040, which has the same ordering key$/m,
    /^blocks +12 later orders of its key$/m,
    /^answer +HTTP 500, sha256:00$/m,
    /^ +1 {2}2026-02-20T10:30:00\.000\+00:00 +250 ms {2}dead +- /m,
    /^2026-02-20T10:30:00\.250\+00:00 {2}sending -> dead +8 /m,
  ];
  for (const line of lines) assert.match(shown.out, line);
  assert.ok(shown.out.includes(`outside id       ${escaped}\n`));
  assert.ok(shown.out.includes('"text": "\\u001b[2J\\u202e\\n行"'));
});

test('ledger prints whether the request took effect, for every use of the key', async () => {
  const use = {
    idempotency_key: 'order-0001',
    request_digest: 'sha256:01',
    status: 'failed',
    result_digest: null,
    outside_id: hostile,
    expires_at: null,
    created_at: order.created_at,
    updated_at: order.updated_at,
    archived: false,
    order_id: 1042,
    supersedes_id: null,
    superseded_by_id: 1043,
    order,
    attempts,
  };
  const earlier = { ...use, status: 'succeeded', archived: true, order: null, order_id: 7, attempts: [] };
  const proof = { ...use, earlier_uses: [earlier] };
  const shown = await run(['ledger', 'a/b c'], { answer: [{ body: JSON.stringify(proof) }] });
  assertHarmless(shown);
  assert.equal(shown.asked[0]?.url, '/api/v1/outbox/ledger/a%2Fb%20c');
  assert.match(shown.out, /^effect +failed: in doubt, an attempt may have taken effect$/m);
  assert.match(shown.out, /^order +1042, dead \(in doubt\), for broker$/m);
  assert.match(shown.out, /earlier use of this key\n.*\neffect +succeeded: it took effect once\n/);
  assert.match(shown.out, /^archived +yes, the key can be used again$/m);
});

test('destinations prints why orders are not sent', async () => {
  const flows = {
    name: 'broker',
    configured: true,
    type: 'http',
    idempotency: 'enforced',
    throttle: null,
    circuit: { state: 'closed' },
    lag_seconds: null,
    needs_attention: 0,
    waiting: 0,
    in_flight: { here: 1, all: 3 },
  };
  const destinations = [
    flows,
    {
      ...flows,
      name: 'slow',
      throttle: { rate_per_second: 12.5, held_until: null },
      lag_seconds: 61.4,
      needs_attention: 2,
    },
    {
      ...flows,
      name: 'away',
      circuit: { state: 'open', reason: hostile, next_probe_at: '2026-02-20T10:31:00.000+00:00' },
      waiting: 10_000,
      waiting_is_lower_bound: true,
    },
    { ...flows, name: 'forgotten', configured: false, type: null, idempotency: null, circuit: null },
  ];
  const shown = await run(['destinations'], { answer: [{ body: JSON.stringify({ destinations }) }] });
  assertHarmless(shown);
  const [, ...lines] = shown.out.trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => line.replaceAll(/ {2,}/g, ' | ')),
    [
      'broker | http | enforced | 0 | - | 0 | 3 | sending',
      'slow | http | enforced | 0 | 61s | 2 | 3 | throttled: at most 12.5/s',
      `away | http | enforced | >= 10000 | - | 0 | 3 | circuit open: ${escaped}, next probe 2026-02-20T10:31:00.000+00:00`,
      'forgotten | - | - | 0 | - | 0 | 3 | not configured on this server',
    ],
  );
});

test('list sends its filters and reads all pages up to the limit', async () => {
  const page = (count: number, next: string | null): Answer => ({
    body: JSON.stringify({
      orders: Array.from({ length: count }, () => order),
      pagination: { total_count: 9, page: 1, has_next: next !== null, next_cursor: next },
    }),
  });
  const filters = ['--status', 'DEAD', '--destination', 'b&c', '--key', 'order-0001', '--needs-attention'];
  const times = ['--since', '2026-02-20T00:00:00+09:00', '--until', '2026-02-21T00:00:00Z'];
  const all = ['--all', '--page-size', '2', '--limit', '3'];
  const shown = await run(['list', ...filters, ...times, ...all], { answer: [page(2, 'c1'), page(1, 'c2')] });
  assertHarmless(shown);
  const expected =
    '/api/v1/outbox/orders?status=dead&destination=b%26c&idempotency_key=order-0001' +
    '&created_from=2026-02-20T00%3A00%3A00%2B09%3A00&created_to=2026-02-21T00%3A00%3A00Z&needs_attention=true';
  assert.deepEqual(
    shown.asked.map((one) => one.url),
    [`${expected}&page_size=2&cursor=`, `${expected}&page_size=1&cursor=c1`],
  );
  assert.equal(shown.out.trimEnd().split('\n').length, 1 + 3);
  assert.match(
    shown.out,
    /^ *1042 {2}dead \(in doubt\) +8 {2}\S+ ago {2}broker +order-0001 {2}UNKNOWN: \\u001b/m,
  );
  assert.equal(shown.err, 'stopped at --limit 3; continue with --cursor c2\n');
});

test('a decision sends its reason and --effect-checked', async () => {
  const decided = { ...order, resolution: 'skipped', needs_attention: false };
  const answer = [{ body: JSON.stringify(decided) }];
  const bare = await run(['cancel', '1042'], { answer });
  assert.deepEqual([bare.asked[0]?.url, bare.asked[0]?.body], ['/api/v1/outbox/orders/1042/cancel', '']);
  const full = await run(['skip', '1042', '--reason', '電話で済み', '--effect-checked'], { answer });
  assert.equal(full.asked[0]?.body, '{"reason":"電話で済み","effect_checked":true}');
  assert.deepEqual([full.code, full.out], [0, '1042 dead (skipped, in doubt)\n']);
});

test('supersede sends the corrected request with the new key', async () => {
  const args = ['supersede', '1042', '--key', 'order-0001-b', '--request', '{"qty": 1.0}', '--reason', 'r'];
  const { code, out, asked } = await run(args, { answer: [{ status: 201, body: added }] });
  assert.deepEqual([code, out], [0, '9007199254740993 queued (replaces 1042)\n']);
  assert.deepEqual(
    asked.map(({ url, key, body }) => [url, key, body]),
    [
      [
        '/api/v1/outbox/orders/1042/supersede',
        'order-0001-b',
        '{"idempotency_key":"order-0001-b","reason":"r","request":{"qty": 1.0}}',
      ],
    ],
  );
});
