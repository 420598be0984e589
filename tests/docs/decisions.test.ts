import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Each record names its status and its date, and the index says the same. */

const folder = fileURLToPath(new URL('../../docs/decisions/', import.meta.url));

type Decision = Readonly<{ file: string; title: string; status: string; date: string }>;

const files = (await readdir(folder)).filter((file) => /^\d{4}-/.test(file)).toSorted();
const index = await readFile(`${folder}README.md`, 'utf8');

test('the index lists every record, with its title, status and date', async () => {
  const records = await Promise.all(files.map(readRecord));
  const listed = [...index.matchAll(/^\| \[\d{4}\]\((.+?)\) \| (.+?) \| (.+?) \| (.+?) \| .+ \|$/gm)].map(
    ([, file = '', title = '', status = '', date = '']): Decision => ({ file, title, status, date }),
  );
  assert.deepEqual(listed, records);
});

test('a number is used once', () => {
  const numbers = files.map((file) => file.slice(0, 4));
  assert.deepEqual(numbers, [...new Set(numbers)]);
});

test('a record that was superseded or amended names a later record, which exists', async () => {
  for (const { file, status } of await Promise.all(files.map(readRecord))) {
    assert.match(status, /^(proposed|accepted|rejected|superseded by )/, file);
    // Whatever follows `supersedes` is earlier; what follows `superseded by` or `amended by` is later.
    const [later = '', earlier = ''] = status.split('supersedes');
    for (const [, by = ''] of later.matchAll(/\]\((.+?)\)/g))
      assert.ok(files.includes(by) && by > file, `${file}: ${by} is no later record`);
    for (const [, old = ''] of earlier.matchAll(/\]\((.+?)\)/g))
      assert.ok(files.includes(old) && old < file, `${file}: ${old} is no earlier record`);
  }
});

async function readRecord(file: string): Promise<Decision> {
  const text = await readFile(folder + file, 'utf8');
  const head = /^# (\d{4})\. (.+)\n\nStatus: (.+)\n\nDate: (\d{4}-\d{2}-\d{2})\n/.exec(text);
  assert.ok(head !== null, `${file} begins with title, status and date`);
  const [, number, title = '', status = '', date = ''] = head;
  assert.equal(number, file.slice(0, 4));
  return { file, title, status, date };
}
