import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createUuidMaker, isUuid } from './uuid.ts';

test('made UUIDs are version 7, distinct and strictly growing, even when the clock stands still or goes back', () => {
  let ms = 1_800_000_000_000;
  const make = createUuidMaker({ now: () => new Date(ms), monotonicMs: () => 0 });
  let last = '';
  for (let i = 0; i < 20_000; i += 1) {
    if (i === 10_000) ms -= 5000;
    const id = make();
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.ok(id > last, `${id} after ${last}`);
    last = id;
  }
});

test('only the canonical spelling is a UUID', () => {
  assert.ok(isUuid('550e8400-e29b-41d4-a716-446655440000'));
  assert.ok(isUuid('550E8400-E29B-41D4-A716-446655440000'));
  for (const text of [
    '',
    'not-a-uuid',
    '550e8400e29b41d4a716446655440000',
    '{550e8400-e29b-41d4-a716-446655440000}',
  ])
    assert.ok(!isUuid(text), text);
});
