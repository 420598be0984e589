import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

type Description = Readonly<{ paths: Readonly<Record<string, Readonly<Record<string, unknown>>>> }>;

let system: TestSystem;
let paths: Description['paths'];
before(async () => {
  system = await startTestSystem();
  ({ paths } = (await system.api.get<Description>('/openapi.json')).body);
});
after(() => system.drop());

test('every path refuses every method that it does not have, and lists those that it has', async () => {
  for (const [path, operations] of Object.entries(paths)) {
    const own = Object.keys(operations).map((method) => method.toUpperCase());
    const allowed = [...own, ...(own.includes('GET') && !isStream(operations['get']) ? ['HEAD'] : [])].sort();
    // Two routes may have the same form with different parameters; a path without any is only itself.
    const isFixed = !path.includes('{');
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY']) {
      if (allowed.includes(method)) continue;
      const response = await fetch(system.url + path.replaceAll(/\{\w+\}/g, 'nothing-1'), { method });
      const said = response.headers.get('allow')?.split(', ') ?? [];
      await response.body?.cancel();
      assert.equal(response.status, 405, `${method} ${path}`);
      assert.deepEqual(
        isFixed ? said : said.filter((name) => allowed.includes(name)),
        allowed,
        `${method} ${path}`,
      );
    }
  }
});

/** A stream has no HEAD: to answer it, the whole stream would have to be read. */
function isStream(operation: unknown): boolean {
  const { responses } = operation as Readonly<{ responses: Readonly<Record<string, { content?: object }>> }>;
  return Object.keys(responses['200']?.content ?? {}).includes('text/event-stream');
}
