import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { dimensions } from '../access/scope.ts';
import { emailAddressesIn } from './email-addresses.ts';
import { MASK } from './mask.ts';
import { compilePattern } from './patterns.ts';
import { createProtection, longestMatch, maskBeginning, searchedChars, type Masks } from './protection.ts';
import type { ProtectRule } from './protect-rule.ts';

const rule: ProtectRule = {
  names: {},
  fields: [],
  headers: [],
  key: false,
  patterns: [],
  action: 'mask',
};

function masksFor(
  rules: readonly Partial<ProtectRule>[],
  patterns: Readonly<Record<string, string>> = {},
): Masks {
  const all = rules.map((one) => ({ ...rule, ...one }));
  return createProtection({ rules: all, patterns, hashKey: () => 'key' }).of('topics', ['orders.v1']);
}

const shownJson = (masks: Masks, value: unknown): unknown => JSON.parse(masks.json(JSON.stringify(value)));

test('a path protects every leaf at it and below it, and nothing else', () => {
  const masks = masksFor([{ fields: ['**.password', '/customer/email', 'items.*.card'] }]);
  assert.deepEqual(
    shownJson(masks, {
      password: 'x',
      deep: [{ Password: { a: 1, b: [null, true] } }],
      customer: { email: 'a', name: 'Ada' },
      email: 'b',
      items: [{ card: 4, qty: 2 }, { card: 5 }],
      '': 7,
    }),
    {
      password: MASK,
      deep: [{ Password: { a: MASK, b: [MASK, MASK] } }],
      customer: { email: MASK, name: 'Ada' },
      email: 'b',
      items: [{ card: MASK, qty: 2 }, { card: MASK }],
      '': 7,
    },
  );
});

test('a dropped field is not there; a dropped item of an array is covered, so that no other takes its place', () => {
  const masks = masksFor([{ fields: ['a', 'list.0', 'c.d'], action: 'drop' }]);
  assert.deepEqual(shownJson(masks, { a: { x: [1] }, b: 1, list: [1, 2], c: { d: 1 } }), {
    b: 1,
    list: [MASK, 2],
    c: {},
  });
  assert.equal(masks.json('{"a":1,"b":2}'), '{"b": 2}');
});

test('hashes of equal values are equal, and those of others are not', () => {
  const masks = masksFor([{ fields: ['*'], action: 'hash' }]);
  const { a, b, c } = shownJson(masks, { a: 'x', b: 'x', c: 'y' }) as Record<string, string>;
  assert.match(a ?? '', /^\[masked:[a-p]{16}\]$/);
  assert.equal(a, b);
  assert.notEqual(a, c);
});

test('numbers, duplicate fields, escapes and JSON in texts are kept or covered as they are written', () => {
  const masks = masksFor([{ fields: ['**.pin'] }]);
  assert.equal(
    masks.json('{"n":1.50e400, "pin":1,"pin":2}'),
    '{"n": 1.50e400, "pin": "[masked]", "pin": "[masked]"}',
  );
  assert.equal(masks.json(String.raw`{"p\u0069n":"x"}`), '{"pin": "[masked]"}');
  const nested = JSON.stringify({
    body: JSON.stringify({ pin: 'secret', other: JSON.stringify({ pin: 1 }) }),
  });
  const shown = masks.json(nested);
  assert.ok(!shown.includes('secret'));
  assert.equal(masks.json('{ "unchanged" : [ 1 ] }'), '{ "unchanged" : [ 1 ] }');
});

test('patterns find what they are for, in texts, numbers and names', () => {
  const masks = masksFor([{ patterns: ['pan', 'email', 'bearer'] }]);
  const text = (shown: string): string => masks.text(shown);
  assert.equal(text('paid with 4111 1111 1111 1111, then'), 'paid with [masked], then');
  assert.equal(text('at 20261119 4111111111111111 9'), 'at 20261119 [masked] 9');
  assert.equal(text('1234567890123 is no card'), '1234567890123 is no card');
  assert.equal(text('mail ada.l+x@example.co.uk now'), 'mail [masked] now');
  assert.equal(text('Authorization: Bearer abc.def-1'), 'Authorization: [masked]');
  assert.equal(text('token eyJhbGci.eyJzdWIi.c2ln here'), 'token [masked] here');
  assert.deepEqual(shownJson(masks, { 'a@b.example': 4111111111111111 }), { [MASK]: MASK });
  assert.equal(masks.json(String.raw`{"x":"a\u0040b.example"}`), '{"x": "[masked]"}');
});

test('addresses of e-mail are found as the expression says that describes them', () => {
  const described = compilePattern('[\\pL\\pN._%+-]{1,64}@(?:[\\pL\\pN-]{1,63}\\.){1,8}[\\pL\\pN-]{1,63}');
  const part = fc.oneof(
    fc.constantFrom('a', '@', '.', '-', '行', '𝒳', ' ', 'b'.repeat(70), 'a.b.'),
    fc.string(),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
      const text = parts.join('').toWellFormed();
      assert.deepEqual(emailAddressesIn(text), described.find(text));
    }),
    { numRuns: 2000 },
  );
});

test('an expression of the configuration is RE2, so no text makes it slow', () => {
  const masks = masksFor([{ patterns: ['slow'] }], { slow: '(a+)+$' });
  const startedAt = performance.now();
  assert.equal(masks.text(`${'a'.repeat(50_000)}b`), `${'a'.repeat(50_000)}b`);
  assert.ok(performance.now() - startedAt < 2000);
  assert.throws(() => createProtection({ rules: [], patterns: { x: '(?=a)' }, hashKey: null }));
});

test('errors that quote a protected field are covered', () => {
  const masks = masksFor([{ fields: ['**.password', '/card/number'] }]);
  for (const text of [
    'bad {"password": "hunter2", "a": 1}',
    String.raw`bad {\"password\":\"hunter2\"}`,
    'bad password=hunter2&x=1',
    "bad {'Number': 'hunter2'}",
    'password: hunter2',
  ]) {
    const shown = masks.text(text);
    assert.ok(!shown.includes('hunter2') && shown.includes(MASK), shown);
    assert.equal(masks.text(shown), shown);
  }
});

test('texts of a document that quote a protected field are covered, however large it is', () => {
  for (const rules of [[{ fields: ['**.password'] }], [{ fields: ['**.password'], patterns: ['email'] }]]) {
    const masks = masksFor(rules);
    const shown = masks.json(JSON.stringify({ error: 'failed on {"password":"hunter2"}', password: 1 }));
    assert.equal(shown, '{"error": "failed on {\\"password\\":[masked]}", "password": "[masked]"}');
  }
  const large = JSON.stringify({
    filler: 'x'.repeat(2 * searchedChars),
    error: 'password=hunter2',
    last: 'shown',
  });
  const { error, last } = shownJson(masksFor([{ fields: ['**.password'] }]), JSON.parse(large)) as Record<
    string,
    string
  >;
  assert.deepEqual([error, last], ['password=[masked]', 'shown']);
});

test('masks make nothing much longer: what would grow more is covered as a whole', () => {
  const masks = masksFor([{ fields: ['**.a'], patterns: ['digit'], action: 'hash' }], { digit: '[0-9]' });
  const many = JSON.stringify({ a: Array.from({ length: 10_000 }, () => 1) });
  assert.equal(masks.json(many), JSON.stringify(MASK));
  assert.equal(
    masks.json(JSON.stringify({ b: 'x', nested: many })),
    JSON.stringify({ b: 'x', nested: MASK }).replaceAll(',', ', ').replaceAll('":', '": '),
  );
  assert.equal(masks.text('1'.repeat(10_000)), MASK);
  assert.equal(masks.value(Buffer.from(many)).toString(), MASK);
  fc.assert(
    fc.property(json, fc.string(), (value, text) => {
      const document = JSON.stringify({ a: value, value });
      assert.ok(masks.json(document).length <= 2 * document.length + 1200);
      assert.ok(masks.text(text).length <= 2 * text.length + 1200);
    }),
  );
});

test('a text that is cut shows no part of what is protected at its end', () => {
  const masks = masksFor([{ patterns: ['pan'] }]);
  const card = '4111 1111 1111 1111';
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 1, max: 300 }), (before, shown) => {
      const whole = `${'x'.repeat(before)} ${card} ${'y'.repeat(3000)}`;
      const read = whole.slice(0, shown + longestMatch);
      assert.ok(!maskBeginning(masks, read, shown).includes('4'));
    }),
  );
});

test('rules of several dimensions are for the items of each, and a rule without names for all', () => {
  const glob = fc.constantFrom('*', 'a*', 'b', 'a.b');
  const name = fc.constantFrom('a', 'b', 'a.b', 'ab', 'c');
  const dimension = fc.constantFrom(...dimensions);
  fc.assert(
    fc.property(
      fc.dictionary(dimension, fc.array(glob, { minLength: 1, maxLength: 2 })),
      dimension,
      name,
      (named, asked, itemName) => {
        const protection = createProtection({
          rules: [{ ...rule, names: named, fields: ['x'] }],
          patterns: {},
          hashKey: null,
        });
        const matches = (pattern: string): boolean =>
          new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '.*')}$`).test(itemName);
        const isMeant = Object.keys(named).length === 0 || (named[asked] ?? []).some(matches);
        assert.equal(protection.of(asked, [itemName]).isEmpty, !isMeant);
      },
    ),
  );
});

test('what cannot be understood is covered as a whole', () => {
  const fields = masksFor([{ fields: ['**.password'] }]);
  assert.equal(fields.value(Buffer.from('{"password":"x"')).toString(), MASK);
  assert.equal(fields.value(Buffer.from('<password>x</password>')).toString(), MASK);
  assert.equal(fields.value(Buffer.from([0xff, 0x01])).toString(), MASK);
  assert.equal(fields.start(Buffer.from('not json password=x')), MASK);
  const patterns = masksFor([{ patterns: ['email'] }]);
  assert.equal(patterns.value(Buffer.from('to a@b.example!')).toString(), 'to [masked]!');
  assert.equal(patterns.value(Buffer.from([0xff, 0x01])).toString(), MASK);
});

test('of a value that is cut, its last part is left out', () => {
  const masks = masksFor([{ fields: ['**.password'], patterns: ['email'] }]);
  assert.equal(masks.start(Buffer.from('{"a":1,"password":"hunt')), '{"a": 1');
  assert.equal(
    masks.start(Buffer.from('{"password":{"deep":"hunter2","x":"y')),
    '{"password": {"deep": "[masked]"',
  );
  assert.equal(masks.start(Buffer.from('{"a":"ada@exam')), '{');
});

test('headers and keys are covered by name, by what they say, or left out', () => {
  const masks = masksFor([
    { headers: ['authorization', 'x-secret-*'], key: true },
    { headers: ['cookie'], action: 'drop' },
    { patterns: ['email'] },
  ]);
  assert.equal(masks.header('Authorization', Buffer.from('x'))?.value?.toString(), MASK);
  assert.equal(masks.header('x-secret-1', Buffer.from([255]))?.value?.toString(), MASK);
  assert.equal(masks.header('cookie', Buffer.from('x')), undefined);
  assert.equal(masks.header('from', Buffer.from('a@b.example'))?.value?.toString(), MASK);
  assert.equal(masks.header('n', Buffer.from([0, 255]))?.value?.toString('hex'), '00ff');
  assert.equal(masks.key(Buffer.from('order-7')).toString(), MASK);
});

test('rules are for the items that they name', () => {
  const protection = createProtection({
    rules: [
      { ...rule, names: { topics: ['pay.*'] }, fields: ['a'] },
      { ...rule, names: { queues: ['mail'] }, fields: ['a'] },
    ],
    patterns: {},
    hashKey: null,
  });
  assert.ok(protection.of('topics', ['orders']).isEmpty);
  assert.ok(!protection.of('topics', ['orders', 'pay.v1']).isEmpty);
  assert.ok(protection.of('topics', [null]).isEmpty);
  assert.ok(protection.of('queues', ['pay.x']).isEmpty);
  assert.ok(!protection.ofAny('topics').isEmpty && protection.ofAny('workflows').isEmpty);
});

test('without the right to see payloads, only errors and names are shown', () => {
  const masks = masksFor([{ patterns: ['email'] }]).withoutPayload();
  assert.equal(masks.json('{"a":1}'), '"[masked]"');
  assert.equal(masks.value(Buffer.from('x')).toString(), MASK);
  assert.equal(masks.start(Buffer.from('x')), MASK);
  assert.equal(masks.header('a', Buffer.from('x'))?.value?.toString(), MASK);
  assert.equal(masks.text('to a@b.example'), 'to [masked]');
});

const leaf = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 5 },
    leaf,
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.constantFrom('password', 'a', 'b'), fc.string()), tie('json'), { maxKeys: 4 }),
  ),
}));

/** What the paths mean, written as plainly as possible. */
function model(value: unknown, isProtected: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => model(item, isProtected));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        model(item, isProtected || name.toLowerCase() === 'password'),
      ]),
    );
  return isProtected ? MASK : value;
}

/** Leaves that hold JSON themselves are left to the test above. */
const isPlain = (value: unknown): boolean =>
  !JSON.stringify(value).includes('"{') && !JSON.stringify(value).includes('"[');

test('masking equals its model, keeps the form, and is done once', () => {
  const masks = masksFor([{ fields: ['**.password'] }]);
  fc.assert(
    fc.property(json.filter(isPlain), (value) => {
      const once = masks.json(JSON.stringify(value));
      assert.deepEqual(JSON.parse(once), JSON.parse(JSON.stringify(model(value, false))));
      assert.equal(masks.json(once), once);
    }),
    { numRuns: 500 },
  );
});

test('no text of a protected leaf comes out, whatever surrounds it', () => {
  const canary = 'canary-4f1d';
  const masks = masksFor([{ fields: ['**.password'], patterns: ['mine'] }], { mine: 'canary-[a-z0-9]+' });
  fc.assert(
    fc.property(json, fc.string(), fc.nat(), (value, around, cut) => {
      const document = JSON.stringify({
        value,
        password: [value, canary],
        [around]: `${around}${canary}`,
        [canary]: 1,
      });
      assert.ok(!masks.json(document).includes(canary));
      const bytes = Buffer.from(document);
      assert.ok(!masks.value(bytes).toString().includes(canary));
      // A value that is cut in the middle of the canary leaves out that leaf.
      const start = masks.start(bytes.subarray(0, cut % bytes.length)) ?? '';
      assert.ok(!start.includes('canary'), start);
      assert.ok(!masks.text(`${around} ${canary} ${around}`).includes(canary));
    }),
    { numRuns: 500 },
  );
});

test('every input has an answer, and its size is bounded', () => {
  const masks = masksFor([
    { fields: ['**.a'], patterns: ['email', 'pan', 'bearer'], headers: ['*'], key: true },
  ]);
  fc.assert(
    fc.property(fc.uint8Array(), fc.string({ unit: 'binary' }), (bytes, text) => {
      const buffer = Buffer.from(bytes);
      assert.ok(masks.value(buffer).length <= Math.max(buffer.length * 10, MASK.length));
      masks.start(buffer);
      assert.ok(masks.text(text).length <= text.length * 2 + MASK.length);
      masks.value(Buffer.from(text));
    }),
    { numRuns: 300 },
  );
});

test('deep and large documents are masked in one pass', () => {
  const masks = masksFor([{ fields: ['**.x.**.y'], patterns: ['email'] }]);
  const deep = `${'{"x":'.repeat(20_000)}{"y":"secret"}${'}'.repeat(20_000)}`;
  assert.ok(!masks.json(deep).includes('secret'));
  const startedAt = performance.now();
  const large = JSON.stringify(
    Array.from({ length: 100_000 }, (_, n) => ({ x: { y: 'secret' }, n, at: 'a@b.example' })),
  );
  const shown = masks.json(large);
  assert.ok(!shown.includes('secret') && !shown.includes('@'));
  assert.ok(performance.now() - startedAt < 10_000);
});

test('patterns are looked for in the first 64 kB; what is behind them is covered', () => {
  const masks = masksFor([{ patterns: ['email'] }]);
  const long = `${'x '.repeat(searchedChars)}a@b.example`;
  const shown = masks.text(long);
  assert.ok(shown.endsWith(MASK) && shown.length < searchedChars && !shown.includes('@'));
  const { first, last } = shownJson(masks, { first: 'seen', filler: long, last: 'not looked at' }) as Record<
    string,
    string
  >;
  assert.deepEqual([first, last], ['seen', MASK]);
});
