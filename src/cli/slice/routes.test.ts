import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const root = new URL('../../../', import.meta.url).pathname;
const { paths } = JSON.parse(readFileSync(`${root}docs/openapi.json`, 'utf8')) as {
  paths: Readonly<Record<string, object>>;
};
const served = Object.entries(paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '{}')}`),
);

const called = globSync('src/cli/**/*.ts', { cwd: root })
  .filter((file) => !file.endsWith('.test.ts'))
  .flatMap((file) =>
    [
      ...readFileSync(`${root}${file}`, 'utf8').matchAll(/['`]((?:GET|POST|DELETE) \/api\/v1\/[^'`]+)['`]/g),
    ].map(([, route = '']) => [file, route] as const),
  )
  .filter(([, route]) => !route.includes('${string}'));

test('the command line calls only routes of the API', () => {
  assert.ok(called.length > 40);
  for (const [file, route] of called) {
    const segments = route
      .replaceAll(/\$\{\w+\}/g, '*')
      .replaceAll(/\{\w+\}/g, '{}')
      .split('/');
    const isServed = served.some((each) => {
      const others = each.split('/');
      return (
        others.length === segments.length && segments.every((one, i) => one === '*' || one === others[i])
      );
    });
    assert.ok(isServed, `${file}: ${route}`);
  }
});
