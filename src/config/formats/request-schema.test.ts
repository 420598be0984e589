import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { readRequestSchema } from './request-schema.ts';

const folder = mkdtempSync(join(tmpdir(), 'request-schema-'));
after(() => rmSync(folder, { recursive: true }));

function read(text: string): ReturnType<typeof readRequestSchema> {
  const file = join(folder, 'schema.json');
  writeFileSync(file, text);
  return readRequestSchema(file);
}

function reasonAgainst(text: string): string | undefined {
  const parsed = read(text);
  assert(parsed.schema === undefined);
  return parsed.reason;
}

test('order is the schema that ships with us', () => {
  const parsed = readRequestSchema('order');
  assert.equal(parsed.schema?.['type'], 'object');
});

test('any other schema is read from its file', () => {
  assert.deepEqual(read('\uFEFF{"type": "object"}'), { schema: { type: 'object' } });
  const missing = readRequestSchema(join(folder, 'missing.json'));
  assert.equal(missing.reason, 'the file cannot be read: ENOENT');
});

test('a file that holds no JSON object is refused without repeating it', () => {
  for (const text of ['', 'hunter2', '["hunter2"]', '5', 'null', '{"a": hunter2}', 'type: object'])
    assert.equal(reasonAgainst(text), 'the file must hold a JSON object');
});

test('a file that would exhaust the process is refused', () => {
  assert.equal(
    reasonAgainst(`{"a": ${'['.repeat(200_000)}${']'.repeat(200_000)}}`),
    'the file is nested too deeply',
  );
  assert.match(reasonAgainst(`{"a": "${'x'.repeat(2 ** 20)}"}`) ?? '', /larger than 1048576 characters/);
});
