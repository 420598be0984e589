import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { en } from '../../../console/features/activity/verbs/en.ts';
import { ja } from '../../../console/features/activity/verbs/ja.ts';
import { permissions } from '../../../src/kernel/access/permissions.ts';
import { ownActions } from '../../../src/kernel/audit/actions.ts';

const isLooking = (action: string): boolean => action.endsWith(':view') && !action.endsWith(':payloads:view');

/** The compiler takes no other action from TypeScript; SQL is read here. */
test('every action that the server can record has words in both languages', async () => {
  const sources = await readdir('src', { recursive: true });
  const texts = await Promise.all(
    sources.filter((path) => path.endsWith('.up.sql')).map((path) => readFile(`src/${path}`, 'utf8')),
  );
  const fromSql = texts
    .flatMap((text) => [...text.matchAll(/audit\.record\(\s*'([^']+)'/g)])
    .map(([, action = '']) => action);
  assert.ok(fromSql.includes('audit:months:drop'), 'the search in migrations finds nothing');
  const all = [...permissions.filter((action) => !isLooking(action)), ...ownActions, ...fromSql];
  for (const texts of [en, ja] as readonly Readonly<Record<string, string>>[])
    assert.deepEqual(
      all.filter((action) => (texts[action] ?? '') === ''),
      [],
    );
});
