import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrationSources } from '../compose.ts';
import { modules } from './migrate.ts';

test('the modules that can be rolled back are those with migrations', () => {
  assert.deepEqual(
    modules,
    migrationSources.map(({ slice }) => slice),
  );
});
