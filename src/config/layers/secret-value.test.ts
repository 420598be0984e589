import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { inspect } from 'node:util';

import { parseValue } from '../../../tests/support/parse-value.ts';
import { fromText } from '../from-text.ts';
import { openSecret, secretValue } from './secret-value.ts';

const folder = mkdtempSync(join(tmpdir(), 'secret-value-'));
after(() => rmSync(folder, { recursive: true }));

const reasonAgainst = (value: string): string | undefined => (value.includes('?') ? 'certain' : undefined);

/** A clock that stands until it is moved. */
function startClock(): { now: () => number; pass(ms: number): void } {
  let time = 0;
  return { now: () => time, pass: (ms) => void (time += ms) };
}

test('a secret is written as itself or as the file that holds it', () => {
  const file = join(folder, 'written');
  writeFileSync(file, 'hunter2');
  for (const written of ['hunter2', { file }]) {
    const own = parseValue(secretValue(reasonAgainst), written);
    assert(own.ok);
    assert.equal(own.value(), 'hunter2');
  }
  for (const value of [5, ['a'], {}, { file: '' }, { path: '/a' }, { file: '/a', more: 1 }, 'a\nb'])
    assert(!parseValue(secretValue(reasonAgainst), value).ok, inspect(value));
  assert.equal(fromText(secretValue(reasonAgainst), '{"file": "/a"}'), '{"file": "/a"}');
});

test('a file that has changed is read again after a second, and not before', () => {
  const clock = startClock();
  const file = join(folder, 'renewed');
  writeFileSync(file, 'one\n');
  const value = openSecret({ file }, reasonAgainst, clock.now);
  assert.equal(value(), 'one');
  writeFileSync(`${file}.new`, 'two\n');
  renameSync(`${file}.new`, file);
  clock.pass(999);
  assert.equal(value(), 'one');
  clock.pass(1);
  assert.equal(value(), 'two');
});

test('a file that is gone, empty or wrong for a while leaves the secret as it was', () => {
  const clock = startClock();
  const file = join(folder, 'flickering');
  const damages = [() => rmSync(file), () => writeFileSync(file, '\n'), () => writeFileSync(file, 'what?')];
  writeFileSync(file, 'good');
  const value = openSecret({ file }, reasonAgainst, clock.now);
  for (const damage of damages) {
    damage();
    clock.pass(1000);
    assert.equal(value(), 'good');
  }
  writeFileSync(file, 'better');
  clock.pass(1000);
  assert.equal(value(), 'better');
});

test('a secret that cannot be used is told by its place, without repeating it', () => {
  const file = join(folder, 'wrong');
  writeFileSync(file, 'hunter2?');
  const problemIn = (value: unknown): readonly string[] => {
    const parsed = parseValue(secretValue(reasonAgainst), value);
    assert(!parsed.ok);
    return parsed.issues.flatMap(({ at, reason }) => [at, reason]);
  };
  assert.deepEqual(problemIn({ file }), ['.file', 'what the file holds must be certain']);
  assert.deepEqual(problemIn('hunter2?'), ['', 'must be certain']);
  assert.deepEqual(problemIn({ file: join(folder, 'missing') }), [
    '.file',
    'the file cannot be read: ENOENT',
  ]);
  writeFileSync(file, '');
  assert.match(problemIn({ file }).join(), /more than nothing/);
});

test('an opened secret shows nothing', () => {
  const file = join(folder, 'shown');
  writeFileSync(file, 'hunter2');
  for (const opened of [openSecret({ file }, reasonAgainst), openSecret('hunter2', reasonAgainst)])
    assert(
      !`${inspect(opened, { showHidden: true, depth: null })} ${JSON.stringify(opened)}`.includes('hunter2'),
    );
});
