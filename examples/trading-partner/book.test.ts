import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { openBook } from './book.ts';

const hourMs = 3_600_000;

function bookFile(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-book-'));
  context.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'book.jsonl');
}

const order = (idempotencyKey: string) =>
  ({ idempotencyKey, order: 'BUY 1000 USDJPY', digest: 'any', firstAnswer: 'accepted' }) as const;

test('a book that is opened again knows what was done, and goes on with its numbers', (t) => {
  const file = bookFile(t);
  const done = openBook({ file, keepMs: hourMs }).enter(order('first-key'));
  const again = openBook({ file, keepMs: hourMs });
  assert.deepEqual(again.find('first-key'), done);
  assert.equal(again.find('other-key'), undefined);
  assert.deepEqual(
    [done, again.enter(order('other-key'))].map(({ brokerOrderId }) => brokerOrderId),
    ['brk-000001', 'brk-000002'],
  );
});

test('a line that a crash has cut short is ignored', (t) => {
  const file = bookFile(t);
  openBook({ file, keepMs: hourMs }).enter(order('first-key'));
  appendFileSync(file, '{"brokerOrderId":"brk-0000');
  assert.deepEqual(
    openBook({ file, keepMs: hourMs })
      .effects()
      .map(({ idempotencyKey }) => idempotencyKey),
    ['first-key'],
  );
});

test('what is asked for again is counted, and done once', () => {
  const book = openBook({ keepMs: hourMs });
  book.enter(order('first-key'));
  assert.equal(book.ask('first-key')?.brokerOrderId, 'brk-000001');
  assert.equal(book.ask('other-key'), undefined);
  assert.deepEqual(
    book.effects().map(({ timesAsked }) => timesAsked),
    [2],
  );
});

test('old effects are forgotten, in memory and in the file', (t) => {
  const file = bookFile(t);
  let nowMs = 0;
  const book = openBook({ file, keepMs: hourMs, nowMs: () => nowMs });
  for (let number = 1; number <= 5000; number += 1) {
    nowMs += hourMs / 100;
    book.enter(order(`key-${number}`));
  }
  assert.equal(book.effects().length, 100);
  assert.equal(book.find('key-4900'), undefined);
  assert.ok(book.find('key-4901'));
  const lines = readFileSync(file, 'utf8').split('\n').length;
  assert.ok(lines < 1300, `${lines} lines`);
  assert.ok(openBook({ file, keepMs: hourMs }).find('key-4901'));
});
