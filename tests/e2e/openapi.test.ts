import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import {
  apiDocument,
  assertValid,
  operations,
  resolve,
  type ApiResponse,
  type Content,
} from '../support/openapi-document.ts';

/** What the document promises by itself; `openapi-requests.test.ts` sends its examples to a server. */

test('the document is valid OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(structuredClone(apiDocument));
  assert.ok(valid, JSON.stringify(errors));
});

test('every operation has an id of its own, a summary, a description and a tag', () => {
  const ids = operations.map(({ operation }) => operation.operationId ?? '');
  assert.equal(new Set(ids).size, ids.length);
  for (const { method, path, operation } of operations) {
    const about = `${method} ${path}`;
    assert.match(operation.operationId ?? '', /^[a-z]+([A-Z][a-z]+)+$/, about);
    assert.match(operation.summary ?? '', /^[A-Z].{5,}[^.]$/, about);
    assert.match(operation.description ?? '', /^[A-Z].{15,}\.$/, about);
    assert.equal(operation.tags?.length, 1, about);
  }
});

test('every operation has an example of its answer, its body and each required parameter', () => {
  for (const { method, path, operation } of operations) {
    const about = `${method} ${path}`;
    const successes = Object.entries(operation.responses).filter(([status]) => /^2\d\d$/.test(status));
    assert.notEqual(successes.length, 0, about);
    for (const [status, response] of successes) assertExamples(response.content ?? {}, `${about} ${status}`);
    assertExamples(operation.requestBody?.content ?? {}, about);
    for (const { name, required, example } of operation.parameters ?? [])
      if (required === true) assert.notEqual(example, undefined, `${about} ${name}`);
  }
});

test('every operation of the API documents its errors, all in the one form', () => {
  for (const { method, path, operation } of operations) {
    if (!path.startsWith('/api/')) continue;
    const about = `${method} ${path}`;
    const errors = Object.entries(operation.responses).filter(([status]) => !status.startsWith('2'));
    const statuses = new Set(errors.map(([status]) => status));
    for (const status of ['400', '500', '503', 'default']) assert.ok(statuses.has(status), about);
    for (const [, response] of errors) {
      const { content = {} } = resolve(response);
      assert.deepEqual(
        content['application/json']?.schema,
        { $ref: '#/components/schemas/ErrorBody' },
        about,
      );
    }
  }
});

test('every example is valid against its own schema', () => {
  let count = 0;
  const check = (content: Content, pointer: readonly string[], about: string): void => {
    for (const [type, { example }] of Object.entries(content)) {
      if (example === undefined || type !== 'application/json') continue;
      assertValid(example, [...pointer, 'content', type, 'schema'], about);
      count += 1;
    }
  };
  for (const { method, path, pointer, operation } of operations) {
    const about = `${method} ${path}`;
    check(operation.requestBody?.content ?? {}, [pointer, 'requestBody'], about);
    for (const [status, response] of Object.entries(operation.responses))
      check(response.content ?? {}, [pointer, 'responses', status], `${about} ${status}`);
    for (const [index, { name, example }] of (operation.parameters ?? []).entries()) {
      const isShared = '$ref' in (apiDocument.paths[path]?.[method]?.parameters?.[index] ?? {});
      if (example === undefined || isShared) continue;
      assertValid(example, [pointer, 'parameters', String(index), 'schema'], `${about} ${name}`);
      count += 1;
    }
  }
  for (const [name, response] of Object.entries(apiDocument.components['responses'] ?? {}))
    check((response as ApiResponse).content ?? {}, ['/components/responses', name], name);
  assert.ok(count > 150, String(count));
});

function assertExamples(content: Content, about: string): void {
  for (const media of Object.values(content)) assert.ok('example' in media, about);
}
