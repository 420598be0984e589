import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { generateClient } from './generate-client.ts';

test('the generated client is the one that the OpenAPI document makes', () => {
  for (const [path, text] of Object.entries(generateClient())) {
    const committed = readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
    assert.equal(committed, text, `${path} differs: run node_modules/.bin/node tools/generate-client.ts`);
  }
});
