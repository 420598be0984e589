import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { diffLimits, diffLines } from './diff-lines.ts';

const textOf = (some: readonly string[]): string => some.map((line) => `${line}\n`).join('');
const lines = (...some: readonly string[]): string => textOf(some);

test('equal texts have no difference', () => {
  assert.deepEqual(diffLines('a\nb', 'a\nb').lines, []);
});

test('a change is shown with three lines of context, as diff -u shows it', () => {
  const from = lines('1', '2', '3', '4', '5', '6', '7', '8', '9');
  assert.deepEqual(diffLines(from, from.replace('5', 'five').replace('9\n', '9')).lines, [
    '@@ -2,8 +2,8 @@',
    ' 2',
    ' 3',
    ' 4',
    '-5',
    '+five',
    ' 6',
    ' 7',
    ' 8',
    '-9',
    '+9',
    '\\ No newline at end of file',
  ]);
});

test('changes far from each other are shown apart', () => {
  const many = Array.from({ length: 40 }, (_, i) => `line ${i + 1}`);
  const { lines: shown } = diffLines(
    textOf(many),
    textOf(many.map((line, i) => (i === 4 || i === 30 ? `${line}!` : line))),
  );
  assert.deepEqual(
    shown.filter((line) => !line.startsWith(' ')),
    ['@@ -2,7 +2,7 @@', '-line 5', '+line 5!', '@@ -28,7 +28,7 @@', '-line 31', '+line 31!'],
  );
});

test('text from nothing, and nothing from text', () => {
  assert.deepEqual(diffLines('', lines('a', 'b')).lines, ['@@ -0,0 +1,2 @@', '+a', '+b']);
  assert.deepEqual(diffLines('a', '').lines, ['@@ -1,1 +0,0 @@', '-a', '\\ No newline at end of file']);
});

/** Applies a diff that is complete, and checks its line numbers on the way. */
function patch(from: string, diff: readonly string[]): string {
  const old = from === '' ? [] : from.split(/(?<=\n)/);
  const result: string[] = [];
  let at = 0;
  diff.forEach((line, i) => {
    const [, oldAt, oldCount, newAt, newCount] = /^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$/.exec(line) ?? [];
    if (oldAt !== undefined) {
      const start = Number(oldAt) - (oldCount === '0' ? 0 : 1);
      result.push(...old.slice(at, start));
      at = start;
      assert.equal(result.length, Number(newAt) - (newCount === '0' ? 0 : 1), line);
      return;
    }
    const whole = diff[i + 1]?.startsWith('\\') === true ? line.slice(1) : `${line.slice(1)}\n`;
    if (line.startsWith('+')) result.push(whole);
    else if (!line.startsWith('\\')) {
      assert.equal(old[at], whole);
      at += 1;
      if (line.startsWith(' ')) result.push(whole);
    }
  });
  return [...result, ...old.slice(at)].join('');
}

describe('whatever the texts', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c', '', 'long line'), { maxLength: 40 })
    .chain((some) => fc.constantFrom(some.join('\n'), textOf(some)));

  test('the diff turns one into the other', () => {
    fc.assert(
      fc.property(text, text, (from, to) => {
        const diff = diffLines(from, to);
        assert.deepEqual([diff.isTruncated, diff.isCoarse], [false, false]);
        assert.equal(patch(from, diff.lines), to);
      }),
      { numRuns: 500 },
    );
  });

  test('the diff has no more changes than lines that are not common', () => {
    fc.assert(
      fc.property(text, fc.nat({ max: 40 }), (from, place) => {
        const some = from.split(/(?<=\n)/);
        const to = [...some.slice(0, place), 'inserted\n', ...some.slice(place)].join('');
        if (from !== '' && !from.endsWith('\n') && place >= some.length) return;
        const changes = diffLines(from, to).lines.filter((line) => /^[+-]/.test(line));
        assert.deepEqual(changes, ['+inserted']);
      }),
    );
  });

  test('a diff beyond the limits is coarse, and says so', () => {
    fc.assert(
      fc.property(text, text, (from, to) => {
        const diff = diffLines(from, to, { ...diffLimits, steps: 3 });
        assert.equal(patch(from, diff.lines), to);
        const cut = diffLines(from, to, { ...diffLimits, comparedLines: 2, shownLines: 4, lineLength: 3 });
        assert.ok(cut.lines.length <= 4);
        for (const line of cut.lines) assert.ok(line.length <= 4);
      }),
    );
  });
});

describe('large texts', () => {
  test('with a few changes are compared line by line', () => {
    const many = Array.from({ length: 500_000 }, (_, i) => String(i % 10));
    const changed = many.with(250_000, 'x').with(250_100, 'y');
    const diff = diffLines(textOf(many), textOf(changed));
    assert.deepEqual(
      diff.lines.filter((line) => /^[+-]/.test(line)),
      ['-0', '+x', '-0', '+y'],
    );
  });

  test('that have nothing in common are shown as replaced, and cut', () => {
    const old = textOf(Array.from({ length: 200_000 }, (_, i) => `a${i}`));
    const diff = diffLines(old, old.replaceAll('a', 'b'));
    assert.deepEqual([diff.isCoarse, diff.isTruncated], [true, true]);
    assert.ok(diff.lines.length <= diffLimits.shownLines);
  });

  test('that differ everywhere among equal lines end after the steps that are allowed', () => {
    const old = Array.from({ length: 40_000 }, (_, i) => String(i % 3));
    const fresh = Array.from({ length: 40_000 }, (_, i) => String(i % 5));
    assert.equal(diffLines(textOf(old), textOf(fresh)).isCoarse, true);
  });

  test('of one line are cut', () => {
    const diff = diffLines('x'.repeat(1_000_000), `${'x'.repeat(999_999)}y`);
    assert.equal(diff.isTruncated, true);
    assert.ok(diff.lines.join('').length < 10_000);
  });
});
