import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Header } from '../../../kernel/broker-record.ts';
import { readLineage } from './read-lineage.ts';

const ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const OTHER = '01890a5d-ac96-774b-bcce-b302099a8057';

const header = (key: string, value: string | null): Header => ({
  key: Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
});

test('a republished record names its message, its attempt, and its version if it was edited', () => {
  const headers = [header('redrive-message-id', ID), header('redrive-attempt', '3')];
  assert.deepEqual(readLineage(headers), { messageId: ID, attempt: 3, version: null });
  assert.equal(readLineage([...headers, header('redrive-version', '2')]).version, 2);
  for (const value of ['0', '-1', 'x', ''])
    assert.equal(readLineage([header('redrive-version', value)]).version, null);
});

test('a record that was never republished names nothing', () => {
  assert.deepEqual(readLineage([header('redrive-message', ID)]), {
    messageId: null,
    attempt: null,
    version: null,
  });
});

test('the last of repeated headers decides, even if it is malformed', () => {
  const headers = [header('redrive-message-id', OTHER), header('redrive-attempt', '1')];
  assert.deepEqual(
    readLineage([...headers, header('redrive-message-id', ID), header('redrive-attempt', '2')]),
    {
      messageId: ID,
      attempt: 2,
      version: null,
    },
  );
  assert.deepEqual(
    readLineage([...headers, header('redrive-message-id', 'x'), header('redrive-attempt', null)]),
    {
      messageId: null,
      attempt: null,
      version: null,
    },
  );
});

test('only a canonical UUID is an id', () => {
  for (const value of [
    ID.toUpperCase(),
    `{${ID}}`,
    ID.replaceAll('-', ''),
    ` ${ID}`,
    `${ID}\n`,
    ID.slice(1),
    '',
    `${ID}0`,
  ])
    assert.equal(readLineage([header('redrive-message-id', value)]).messageId, null, value);
});

test('only a decimal from 1 to 2147483647 is an attempt', () => {
  assert.equal(readLineage([header('redrive-attempt', '2147483647')]).attempt, 2_147_483_647);
  for (const value of [
    '0',
    '-1',
    '01',
    '1.0',
    '1e3',
    ' 1',
    '1\n',
    '2147483648',
    '9999999999',
    '99999999999',
    '',
    'x',
  ])
    assert.equal(readLineage([header('redrive-attempt', value)]).attempt, null, value);
});

test('never throws, whatever the bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 50 }), (bytes) => {
      const value = Buffer.from(bytes);
      const headers = ['redrive-message-id', 'redrive-attempt'].map((key) => ({
        key: Buffer.from(key),
        value,
      }));
      const { attempt } = readLineage(headers);
      assert.ok(attempt === null || String(attempt) === value.toString());
    }),
  );
});
