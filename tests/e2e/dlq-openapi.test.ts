import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertApproved } from '../support/approved.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** Every route is a promise to clients: one that comes, goes or changes its answers changes the approved list. */

type Parameter = Readonly<{ name: string; in: string; required?: boolean }>;
type Operation = Readonly<{
  summary?: string;
  tags?: readonly string[];
  parameters?: readonly (Parameter | Readonly<{ $ref: string }>)[];
  requestBody?: Readonly<{ required: boolean }>;
  responses: Readonly<Record<string, unknown>>;
}>;
type Description = Readonly<{
  openapi: string;
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}>;

let system: TestSystem;
let description: Description;
before(async () => {
  system = await startTestSystem();
  description = (await system.api.get<Description>('/openapi.json')).body;
});
after(() => system.drop());

test('the routes are the approved ones', async () => {
  await assertApproved(new URL('snapshots/routes.txt', import.meta.url), routesOf(description));
});

test('every route says in a sentence what it is for', () => {
  for (const [path, operations] of Object.entries(description.paths))
    for (const [method, { summary }] of Object.entries(operations))
      assert.match(summary ?? '', /^[A-Z].{5,}/, `${method} ${path}`);
});

test('every route of the slice describes its answer and the one form of its errors', () => {
  for (const [path, operations] of Object.entries(description.paths)) {
    if (!path.startsWith('/api/')) continue;
    for (const [method, { responses }] of Object.entries(operations)) {
      assert.ok(
        Object.keys(responses).some((status) => /^2\d\d$/.test(status)),
        `${method} ${path}`,
      );
      assert.match(
        JSON.stringify(responses['default'] ?? null),
        /ErrorBody|#\/components/,
        `${method} ${path}`,
      );
    }
  }
});

function takenAs({ name, in: place, required }: Parameter): string {
  return `${place}:${name}${required === true ? '' : '?'}`;
}

/** One line per route: method, path, what it takes, and with what it answers. */
function routesOf({ paths }: Description): string {
  const lines = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => {
      const parameters = (operation.parameters ?? []).map((parameter) =>
        '$ref' in parameter ? parameter.$ref.replace('#/components/parameters/', '') : takenAs(parameter),
      );
      const { requestBody } = operation;
      const body = requestBody === undefined ? [] : [`body${requestBody.required ? '' : '?'}`];
      const takes = [...parameters, ...body].join(' ');
      const answers = Object.keys(operation.responses).join(' ');
      return `${method.toUpperCase()} ${path}${takes === '' ? '' : ` (${takes})`} -> ${answers}`;
    }),
  );
  return `${lines.join('\n')}\n`;
}
