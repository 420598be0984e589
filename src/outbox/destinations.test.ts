import assert from 'node:assert/strict';
import { test } from 'node:test';
import { schemaViolation } from './destinations.ts';

test('a schema violation names the first flaws in its message and all of them in its details', () => {
  const flaws = ['a', 'b', 'c', 'd', 'e'].map((name) => ({
    field: `request.${name}`,
    reason: 'required',
    message: 'is required',
  }));
  const violation = schemaViolation({ name: 'broker', flawsOf: () => flaws }, {});
  assert.equal(violation?.code, 'SYS_OUTBOX_SCHEMA_VIOLATION');
  assert.match(violation?.message ?? '', /broker.*request\.a is required; .*; and 2 more$/);
  assert.deepEqual(violation?.details, flaws);
  assert.equal(schemaViolation({ name: 'broker', flawsOf: () => [] }, {}), null);
});
