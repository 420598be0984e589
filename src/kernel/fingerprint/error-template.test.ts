import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { templateOf } from './error-template.ts';

const templates: readonly (readonly [string, string])[] = [
  ['customer 4711 is locked', 'customer <n> is locked'],
  ['order 7c9e6679-7425-40de-944b-e07fc1f90ae7 not found.', 'order <uuid> not found.'],
  ['order-7C9E6679-7425-40DE-944B-E07FC1F90AE7: gone', 'order-<uuid>: gone'],
  ['took 1,234.56 ms, limit -3', 'took <n> ms, limit <n>'],
  ['partitions [0, 1, 2] are behind', 'partitions [<n>] are behind'],
  ['waited 30s for lock 0x7f3a', 'waited <duration> for lock <id>'],
  ['commit a1b2c3d4e5f6 failed', 'commit <id> failed'],
  ['id 01ARZ3NDEKTSV4RRFFQ69G5FAV is taken', 'id <id> is taken'],
  ['no such user \'ann\' in "users"', 'no such user \'<text>\' in "<text>"'],
  [
    'null value in column "email" of relation "users_7"',
    'null value in column "email" of relation "users_<n>"',
  ],
  [
    "cannot read properties of undefined (reading 'id')",
    "cannot read properties of undefined (reading 'id')",
  ],
  ['rejected Order(id=17, name=Ann (old)) twice', 'rejected Order(<fields>) twice'],
  ['rejected Order{id=17, name=[a', 'rejected Order{<fields>}'],
  ['no "{" or "{a=" in "x" of 7', 'no "<text>" or "<text>" in "<text>" of <n>'],
  ['bad &{ID:17 Name:ann}', 'bad &{<fields>}'],
  ['Key (email)=(ann) already exists', 'Key (email)=(<fields>) already exists'],
  ['expired on Fri, 20 Feb 2026 10:30:00 GMT', 'expired on <time>'],
  ['expired on Feb 20, 2026, 10:30:00 AM.', 'expired on <time>.'],
  ['expired on 20/Feb/2026:10:30:00 +0000', 'expired on <time>'],
  ['cannot read "{"id":"x"}" (1)', 'cannot read "<text>" (<n>)'],
  ['timed out after 1m30.5s, PT1M30S or 500ms', 'timed out after <duration> or <duration>'],
  ['10MB exceed 512KiB by 1.5e3 %', '<size> exceed <size> by <n> %'],
  ['connect [2001:db8::1]:443 refused', 'connect <address> refused'],
  ["can't find the user's cart", "can't find the user's cart"],
  ['キー「注文-12」が“不正”です', 'キー「<text>」が“<text>”です'],
  ['注文4711が見つかりません', '注文<n>が見つかりません'],
  ['expired at 2026-02-20T10:30:00.123Z', 'expired at <time>'],
  ['expired at 2026-02-20 10:30:00', 'expired at <time>'],
  ['Connection to 10.0.0.12:5432 refused', 'Connection to <address> refused'],
  ['Connection to db-3.internal.example:5432 refused.', 'Connection to <address> refused.'],
  ['broker-2/10.1.2.3:9092 (id: 2 rack: null)', 'broker-<n>/<address> (id: <n> rack: null)'],
  ['connect ECONNREFUSED ::1:5432', 'connect ECONNREFUSED <address>'],
  ['mail to ann.lee+x@shop.example bounced', 'mail to <email> bounced'],
  ['GET https://api.example/v1/orders/17?x=1 answered 503', 'GET <url> answered <n>'],
  ['no file /var/data/2026/report-17.csv', 'no file /var/data/<n>/report-<n>.csv'],
  ['jdbc:postgresql://db/orders is away', '<url> is away'],
  ['cannot cast com.acme.Order@1b2c3d4', 'cannot cast com.acme.Order@<id>'],
  ['cannot parse {"id":"x1","total":12}', 'cannot parse {<fields>}'],
  ['  two\n\tlines  ', 'two lines'],
  ['', ''],
];

test('replaces variable parts and keeps the rest', () => {
  for (const [message, template] of templates) assert.equal(templateOf(message), template);
});

test('messages that differ in numbers, ids and quoted values have one template', () => {
  const message = fc
    .tuple(
      fc.integer(),
      fc.uuid(),
      fc.stringMatching(/^[^"\s][^"]*$/),
      fc.ipV4(),
      fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }),
    )
    .map(
      ([n, id, text, ip, date]) =>
        `order ${n} (${id}) of "${text}" failed on ${ip}:9092 at ${date.toISOString()}`,
    );
  fc.assert(
    fc.property(message, (text) => {
      assert.equal(templateOf(text), 'order <n> (<uuid>) of "<text>" failed on <address> at <time>');
    }),
  );
});

test('a template has a maximum length, can be stored and has no line breaks', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 3000 }), (message) => {
      const template = templateOf(message.replaceAll('\0', ''));
      assert.ok(template.length <= 512 && template.isWellFormed() && !template.includes('\n'));
    }),
  );
});

test('truncation never splits a surrogate pair', () => {
  assert.ok(templateOf(`${'a'.repeat(511)}😀`).isWellFormed());
});

test('only the beginning of a long message matters', () => {
  const start = 'word '.repeat(400);
  assert.equal(templateOf(`${start}1`), templateOf(`${start}two and more`));
});

test('takes linear time', () => {
  const hostile = `{" A{a= ( =( [ ' " “ 'a'b . : 1. 1: a@ @1 /1 - 1a <n>, a.1- +1 :// <url> \\`.split(' ');
  const started = performance.now();
  for (const piece of [...hostile, ' ', "'a'b "])
    for (const end of ['', 'x', '1', "'"]) templateOf(piece.repeat(2047).slice(0, 2047) + end);
  assert.ok(performance.now() - started < 1000);
});
