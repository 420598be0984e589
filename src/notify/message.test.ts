import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { GroupName, Notice } from './grouping.ts';
import { mailBody, slackBody, webhookBody, type Message, type Source } from './message.ts';
import { oneLine } from './one-line.ts';

const source: Source = { name: 'redrive', environment: 'prod', publicUrl: 'https://redrive.example.com/' };
const atMs = Date.UTC(2026, 1, 20, 10, 30);

function messageOf(about: Partial<GroupName> = {}, notice: Partial<Notice> = {}): Message {
  return {
    id: '0190a000-0000-7000-8000-000000000001',
    atMs,
    about: { slice: 'outbox', kind: 'dead', subject: 'broker', ...about },
    notice: {
      count: 1,
      firstAtMs: atMs - 1000,
      lastAtMs: atMs - 1000,
      samples: [{ id: '17', summary: 'BAD_REQUEST: HTTP 400' }],
      isSummary: false,
      ...notice,
    },
  };
}

test('the body of a webhook call keeps its fields within version 1', () => {
  assert.deepEqual(webhookBody(source, messageOf()), {
    version: 1,
    id: '0190a000-0000-7000-8000-000000000001',
    at: '2026-02-20T10:30:00.000+00:00',
    source: { name: 'redrive', environment: 'prod' },
    slice: 'outbox',
    kind: 'dead',
    subject: 'broker',
    headline: '1 order to broker is dead',
    is_summary: false,
    count: 1,
    first_at: '2026-02-20T10:29:59.000+00:00',
    last_at: '2026-02-20T10:29:59.000+00:00',
    link: 'https://redrive.example.com/api/v1/outbox/orders?destination=broker&needs_attention=true',
    items: [
      {
        id: '17',
        summary: 'BAD_REQUEST: HTTP 400',
        link: 'https://redrive.example.com/api/v1/outbox/orders/17',
      },
    ],
  });
});

const headlines: readonly (readonly [Partial<GroupName>, Partial<Notice>, string])[] = [
  [{}, { count: 3 }, '3 orders to broker are dead'],
  [{}, { count: 3, isSummary: true }, '3 more orders to broker are dead'],
  [
    { kind: 'late_success' },
    { count: 1 },
    '1 order to broker had been resolved, but the effect has happened',
  ],
  [{ slice: 'dlq', subject: 'orders.v1' }, { count: 2 }, '2 messages of topic orders.v1 are DEAD'],
  [{ slice: 'dlq', kind: 'redrive_stopped', subject: '0197' }, {}, '1 redrive with id 0197 has stopped'],
  [{ slice: 'dlq', kind: 'redrive_finished', subject: '0197' }, {}, '1 redrive with id 0197 has finished'],
  [{ slice: 'dlq', kind: 'policy_disabled', subject: 'soon' }, {}, '1 retry policy named soon is disabled'],
  [
    { slice: 'jobs', kind: 'dead_letter', subject: 'summarize' },
    { count: 1, isSummary: true },
    '1 more job of queue summarize is in dead_letter',
  ],
  [
    { slice: 'saga', kind: 'stuck', subject: 'ship' },
    { count: 2 },
    '2 sagas of workflow ship need attention',
  ],
  [{ slice: 'other', kind: 'toString', subject: 'x' }, { count: 5 }, '5 x other toString: x'],
];

for (const [about, notice, expected] of headlines)
  test(`headline: ${expected}`, () => {
    const { headline } = webhookBody(source, messageOf(about, notice)) as { headline: string };
    assert.equal(headline, expected);
  });

test('links lead to the item and to the list, as paths without a public URL', () => {
  const { publicUrl: _, ...nowhere } = source;
  const linksIn = (about: Partial<GroupName>): readonly unknown[] => {
    const body = webhookBody({ ...nowhere, publicUrl: undefined }, messageOf(about)) as {
      link: unknown;
      items: readonly Readonly<{ link: unknown }>[];
    };
    return [body.link, body.items[0]?.link];
  };
  assert.deepEqual(linksIn({ slice: 'dlq', subject: 'a&b=c' }), [
    '/api/v1/dlq/messages?topic=a%26b%3Dc&status=DEAD',
    '/api/v1/dlq/messages/17',
  ]);
  for (const kind of ['redrive_finished', 'redrive_stopped'])
    assert.deepEqual(linksIn({ slice: 'dlq', kind, subject: '17' }), [
      '/api/v1/dlq/redrives',
      '/api/v1/dlq/redrives/17',
    ]);
  assert.deepEqual(linksIn({ slice: 'dlq', kind: 'policy_disabled', subject: '17' }), [
    '/api/v1/dlq/policies',
    '/api/v1/dlq/policies/17',
  ]);
  assert.deepEqual(linksIn({ slice: 'jobs', kind: 'dead_letter' }), [
    '/api/v1/jobs/dead?queue=broker',
    '/api/v1/jobs/17',
  ]);
  assert.deepEqual(linksIn({ kind: 'late_success' }), [
    '/api/v1/outbox/orders?destination=broker',
    '/api/v1/outbox/orders/17',
  ]);
  assert.deepEqual(linksIn({ slice: 'saga', kind: 'stuck', subject: 'ship' }), [
    '/api/v1/sagas?workflow_name=ship&needs_attention=true',
    '/api/v1/sagas/17',
  ]);
  assert.deepEqual(linksIn({ slice: 'constructor', kind: 'x' }), [null, null]);
});

test('external text is no markup in Slack', () => {
  const samples = [{ id: '17', summary: 'said <!channel> & <https://evil.example|click>' }];
  const { text } = slackBody(source, messageOf({}, { count: 12, samples, isSummary: true })) as {
    text: string;
  };
  assert.equal(
    text,
    [
      '*[redrive prod] 12 more orders to broker are dead*',
      '- 17: said &lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;',
      'and 11 more',
      'from 2026-02-20T10:29:59.000+00:00 to 2026-02-20T10:29:59.000+00:00',
      'https://redrive.example.com/api/v1/outbox/orders?destination=broker&amp;needs_attention=true',
    ].join('\n'),
  );
});

test('a mail has a one-line subject and a text', () => {
  assert.deepEqual(mailBody(source, messageOf()), {
    subject: '[redrive prod] 1 order to broker is dead',
    text: [
      '[redrive prod] 1 order to broker is dead',
      '',
      '- 17: BAD_REQUEST: HTTP 400',
      'at 2026-02-20T10:29:59.000+00:00',
      'https://redrive.example.com/api/v1/outbox/orders?destination=broker&needs_attention=true',
      '',
    ].join('\n'),
  });
});

test('external text becomes one well-formed line of limited length', () => {
  const unit = fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0x2000, max: 0x2070 }));
  const text = fc.array(unit, { maxLength: 300 }).map((units) => String.fromCharCode(...units));
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 100 }), (input, max) => {
      const line = oneLine(input, max);
      assert.ok(Array.from(line).length <= max);
      assert.ok(line.isWellFormed());
      assert.doesNotMatch(line, /[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/u);
      assert.equal(oneLine(line, max), line, 'cleaning twice changes nothing');
    }),
  );
  assert.equal(oneLine('a\r\nBcc: x@y\0\ud800', 100), 'a Bcc: x@y\uFFFD\uFFFD');
  assert.equal(oneLine('x'.repeat(1_000_000), 5), 'xxxx…');
  assert.equal(oneLine('  ', 5), '');
});

test('Slack escaping leaves no bare angle bracket, and is reversible', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 50 }), (input) => {
      const summary = oneLine(input, 50);
      const { text } = slackBody(source, messageOf({}, { samples: [{ id: '1', summary }] })) as {
        text: string;
      };
      assert.doesNotMatch(text, /[<>]/);
      const said = text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
      assert.ok(said.includes(`- 1: ${summary}\n`));
    }),
  );
});
