import * as fc from 'fast-check';

/** JSON texts in every spelling, for what must read them all alike; some of them nothing may accept. */

/** RFC 8785, section 3.2.2, with the one number in it that is not its own shortest form replaced by that form. */
export const rfcSample = {
  text: String.raw`{
    "numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  }`,
  canonical: String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
} as const;

/** RFC 8785, section 3.2.3: the order of keys. */
export const rfcOrder = {
  text: String.raw`{
    "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"
  }`,
  values: [
    'Carriage Return',
    'One',
    'Control',
    'Latin Small Letter O With Diaeresis',
    'Euro Sign',
    'Emoji: Grinning Face',
    'Hebrew Letter Dalet With Dagesh',
  ],
} as const;

/** RFC 8785, appendix B: the bits of a double, and its text. */
export const rfcNumbers: readonly (readonly [bits: bigint, text: string])[] = [
  [0x0000000000000000n, '0'],
  [0x8000000000000000n, '0'],
  [0x0000000000000001n, '5e-324'],
  [0x8000000000000001n, '-5e-324'],
  [0x7fefffffffffffffn, '1.7976931348623157e+308'],
  [0xffefffffffffffffn, '-1.7976931348623157e+308'],
  [0x4340000000000000n, '9007199254740992'],
  [0xc340000000000000n, '-9007199254740992'],
  [0x4430000000000000n, '295147905179352830000'],
  [0x44b52d02c7e14af5n, '9.999999999999997e+22'],
  [0x44b52d02c7e14af6n, '1e+23'],
  [0x44b52d02c7e14af7n, '1.0000000000000001e+23'],
  [0x444b1ae4d6e2ef4en, '999999999999999700000'],
  [0x444b1ae4d6e2ef4fn, '999999999999999900000'],
  [0x444b1ae4d6e2ef50n, '1e+21'],
  [0x3eb0c6f7a0b5ed8cn, '9.999999999999997e-7'],
  [0x3eb0c6f7a0b5ed8dn, '0.000001'],
  [0x41b3de4355555553n, '333333333.3333332'],
  [0x41b3de4355555554n, '333333333.33333325'],
  [0x41b3de4355555555n, '333333333.3333333'],
  [0x41b3de4355555556n, '333333333.3333334'],
  [0x41b3de4355555557n, '333333333.33333343'],
  [0xbecbf647612f3696n, '-0.0000033333333333333333'],
  [0x43143ff3c1cb0959n, '1424953923781206.2'],
];

export function doubleOf(bits: bigint): number {
  return new Float64Array(BigUint64Array.of(bits).buffer)[0] ?? 0;
}

function bitsOf(double: number): bigint {
  return new BigUint64Array(Float64Array.of(double).buffer)[0] ?? 0n;
}

/** The double so many steps away. */
function nudge(double: number, steps: number): number {
  return doubleOf(BigInt.asUintN(64, bitsOf(double) + BigInt(steps)));
}

const steps = fc.integer({ min: -2, max: 2 });

const doubles: fc.Arbitrary<number> = fc
  .oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.tuple(fc.integer({ min: -1074, max: 1023 }), steps).map(([power, by]) => nudge(2 ** power, by)),
    fc.tuple(fc.integer({ min: 50, max: 140 }), steps).map(([power, by]) => nudge(2 ** power, by)),
    fc.tuple(fc.integer({ min: -10, max: 25 }), steps).map(([power, by]) => nudge(10 ** power, by)),
    fc.integer({ min: 1, max: 5000 }).map((count) => count * Number.MIN_VALUE),
    fc.tuple(fc.integer({ min: 1, max: 9 }), steps).map(([times, by]) => nudge(times * 2 ** 53, by)),
    fc.constantFrom(1e21, 1e-6, 1e-7, Number.MAX_VALUE, 2.2250738585072014e-308),
  )
  .filter(Number.isFinite);

/** Halfway between two doubles from 2^53 on, in up to 17 digits: where PostgreSQL's shortest form is another. */
const halfways: fc.Arbitrary<string> = fc
  .tuple(
    fc.integer({ min: 1, max: 22 }),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.nat(60),
    fc.boolean(),
  )
  .map(([zeros, where, doubled, isSpeltOut]) => {
    const power = 5n ** BigInt(zeros);
    const least = 2n ** 53n / power + 1n;
    const factor = (least + BigInt(Math.floor(where * Number(2n ** 53n / power)))) | 1n;
    let digits = factor;
    for (let i = 0; i < doubled && digits * 2n < 10n ** 17n; i += 1) digits *= 2n;
    return isSpeltOut ? `${digits}${'0'.repeat(zeros)}` : `${digits}e${zeros}`;
  });

/** One number written so that its point stands elsewhere, with zeros at either end. */
const shifted: fc.Arbitrary<string> = fc
  .tuple(doubles, fc.integer({ min: -25, max: 25 }), fc.constantFrom('e', 'E', 'e+', 'E+00'))
  .map(([double, by, e]) => {
    const [, sign = '', first = '', rest = '', power = '0'] =
      /^(-?)(\d)(?:\.(\d+))?e(.+)$/.exec(double.toExponential()) ?? [];
    const digits = `${first}${rest}`;
    const last = Number(power) - rest.length;
    const to = by < 0 ? last + digits.length - by : last - by;
    const mantissa =
      by < 0 ? `0.${'0'.repeat(-by)}${digits}` : `${digits}${first === '0' ? '' : '0'.repeat(by)}`;
    return `${sign}${mantissa}${to < 0 ? `e${to}` : `${e}${to}`}`;
  });

const arbitraryLiterals: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9]\d{0,20}$/)),
    fc.oneof(fc.constant(''), fc.stringMatching(/^\.\d{1,20}$/)),
    fc.oneof(fc.constant(''), fc.stringMatching(/^[eE][+-]?\d{1,3}$/)),
  )
  .map((parts) => parts.join(''));

const oddLiterals = `
  0 -0 0.0 -0.0e5 0e-400000 0E+400000 0e99999999999999999999 10000.0 1E2
  1e400000 1e-400000 1e99999999999999999999 1e-99999999999999999999 1e400 1e-400
  12345678901234567890 0.1000000000000000055511 1e0000000000000000000021 0.1e-00000000000
  1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 1.8e308 17976931348623157e292
  5e-324 4.9e-324 4e-324 3e-324 2e-324 9e-324 1e-323 0.000001 0.0000001 -0.00000012 0.0000010
  22517998136852490 45035996273704976 27021597764222968 9007199254740993 9007199254740992.5
`
  .trim()
  .split(/\s+/);

export const numberTexts: fc.Arbitrary<string> = fc.oneof(
  doubles.map(String),
  fc.tuple(doubles, fc.nat(20)).map(([double, digits]) => double.toExponential(digits)),
  fc.tuple(doubles, fc.integer({ min: 1, max: 20 })).map(([double, digits]) => double.toPrecision(digits)),
  halfways,
  shifted,
  arbitraryLiterals,
  fc.constantFrom(...oddLiterals),
);

const storable = Array.from(
  'ab0_ /{}[],:"\\\u007fé€\u2028\u0001\u001f\t\b\f\r\n\ud7ff\ue000\ufb33\uffff\u{10000}\u{1f600}\u{10ffff}',
);
const unstorable = ['\0', '\ud800', '\udbff', '\udc00', '\udfff'];

type Spelling = 'short' | 'lower' | 'upper';

function spell(character: string, spelling: Spelling): string {
  if (spelling === 'short' && character !== '\0' && character.isWellFormed())
    return character === '/' ? String.raw`\/` : JSON.stringify(character).slice(1, -1);
  const escapes = Array.from({ length: character.length }, (_, i) => {
    const hex = character.charCodeAt(i).toString(16).padStart(4, '0');
    return String.raw`\u${spelling === 'upper' ? hex.toUpperCase() : hex}`;
  });
  return escapes.join('');
}

function stringTextsOf(characters: readonly string[]): fc.Arbitrary<string> {
  const spelt = fc.tuple(
    fc.constantFrom(...characters),
    fc.constantFrom<Spelling>('short', 'lower', 'upper'),
  );
  return fc
    .array(spelt, { maxLength: 4 })
    .map((parts) => `"${parts.map(([character, how]) => spell(character, how)).join('')}"`);
}

/** Strings in every spelling, and some of what nothing may accept. */
const stringTexts = fc.oneof(
  { weight: 60, arbitrary: stringTextsOf(storable) },
  { weight: 1, arbitrary: stringTextsOf([...storable, ...unstorable]) },
  { weight: 1, arbitrary: fc.constantFrom('"__proto__"', String.raw`"\u005f_proto__"`) },
);

const space = fc.constantFrom('', '', ' ', '\n\t', '\r');

/** Whole texts: white space everywhere, keys that come twice, numbers of which few are inexact. */
export const jsonTexts: fc.Arbitrary<string> = fc.letrec<{ value: string; array: string; object: string }>(
  (tie) => ({
    value: fc
      .tuple(
        space,
        fc.oneof(
          { maxDepth: 5, withCrossShrink: true },
          fc.constantFrom('true', 'false', 'null', '7', '145.001'),
          stringTexts,
          { weight: 1, arbitrary: doubles.map(String) },
          tie('array'),
          { weight: 3, arbitrary: tie('object') },
        ),
        space,
      )
      .map((parts) => parts.join('')),
    array: fc
      .tuple(space, fc.array(tie('value'), { maxLength: 4 }))
      .map(([blank, items]) => `[${items.length === 0 ? blank : items.join(',')}]`),
    object: fc
      .tuple(space, fc.array(fc.tuple(stringTexts, space, tie('value')), { maxLength: 6 }))
      .map(
        ([blank, members]) =>
          `{${blank}${members.map(([key, gap, value]) => `${key}${gap}:${value}`).join(`,${blank}`)}}`,
      ),
  }),
).value;

/** Texts that were JSON before one character came in or went away; some still are. */
export const brokenTexts: fc.Arbitrary<string> = fc
  .tuple(jsonTexts, fc.nat(), fc.constantFrom('', ...Array.from('{}[],:"0e-.\\ t\n')))
  .map(([text, place, added]) => {
    const at = place % (text.length + 1);
    return `${text.slice(0, at)}${added}${text.slice(added === '' ? at + 1 : at)}`.toWellFormed();
  });
