import { expect, test } from 'vitest';
import { completeFilter, withTerm } from './complete-filter.ts';
import { parseFilter, printFilter } from './filter.ts';
import { readTime, toQuery, type Qualifiers } from './qualifiers.ts';

const now = Date.parse('2026-11-19T12:00:00Z');
const table: Qualifiers = {
  qualifiers: [
    {
      name: 'status',
      kind: 'choice',
      parameter: 'status',
      choices: ['PENDING', 'DEAD'],
      excludedParameter: 'not_status',
      facet: 'status',
    },
    { name: 'topic', kind: 'one', parameter: 'topic', excludedParameter: 'not_topic', facet: 'topic' },
    { name: 'since', kind: 'time', parameter: 'since' },
    { name: 'is', kind: 'flag', parameter: ['unroutable'], choices: ['unroutable'] },
  ],
  text: { parameter: 'text', excludedParameter: 'not_text' },
};
const query = (text: string) => toQuery(parseFilter(text), table, now);
const problems = (text: string) => {
  const result = query(text);
  return result.isValid ? [] : result.problems.map(({ code }) => code);
};

test('a filter becomes parameters of the API', () => {
  expect(
    query('status:DEAD,PENDING -topic:a -topic:b since:2h -is:unroutable timed "out of" -"never"'),
  ).toEqual({
    isValid: true,
    parameters: [
      ['status', 'DEAD'],
      ['status', 'PENDING'],
      ['not_topic', 'a'],
      ['not_topic', 'b'],
      ['since', '2026-11-19T10:00:00.000Z'],
      ['unroutable', 'false'],
      ['text', 'timed out of'],
      ['not_text', 'never'],
    ],
  });
});

test('what cannot be asked is a problem and no query', () => {
  expect(problems('tpic:x')).toEqual(['unknown_qualifier']);
  expect(problems('status:dead')).toEqual(['unknown_choice']);
  expect(problems('topic:')).toEqual(['missing_value']);
  expect(problems('topic:a topic:b')).toEqual(['given_twice']);
  expect(problems('is:unroutable -is:unroutable')).toEqual(['given_twice']);
  expect(problems('since:yesterday since:2h')).toEqual(['wrong_time', 'given_twice']);
  expect(problems('-since:2h')).toEqual(['not_excludable']);
  expect(problems('-topic:x '.repeat(11))).toEqual(['too_many']);
  expect(toQuery(parseFilter('word'), { ...table, text: null }, now)).toMatchObject({
    problems: [{ code: 'no_text' }],
  });
});

test('times are ages or ISO dates', () => {
  expect(readTime('90m', now)).toBe('2026-11-19T10:30:00.000Z');
  expect(readTime('2026-01-31', now)).toBe('2026-01-31T00:00:00.000Z');
  expect(readTime('999999w', now)).toMatch(/^-/);
  expect(readTime('2026-13-31', now)).toBeNull();
});

test('completes the qualifier and the value at the caret', () => {
  const counts = { topic: [{ value: 'orders.v1', count: 12 }] };
  expect(completeFilter('to', 2, table, {})).toMatchObject([{ text: 'topic:', caret: 6 }]);
  expect(completeFilter('-si', 3, table, {})).toEqual([]);
  expect(completeFilter('topic:ord status:DEAD', 9, table, counts)).toMatchObject([
    { text: 'topic:orders.v1 status:DEAD', caret: 15, count: 12 },
  ]);
  expect(completeFilter('status:d', 8, table, {}).map(({ label }) => label)).toEqual([
    'status:PENDING',
    'status:DEAD',
  ]);
  expect(completeFilter('nothing:x', 9, table, {})).toEqual([]);
  expect(completeFilter('', 0, table, {})).toHaveLength(4);
});

test('a value of a form takes the place of the term', () => {
  const filter = parseFilter('a topic:x -topic:y b');
  expect(printFilter(withTerm(filter, 'topic', 'z w'))).toBe('a topic:"z w" -topic:y b');
  expect(printFilter(withTerm(filter, 'topic', null))).toBe('a -topic:y b');
  expect(printFilter(withTerm(filter, 'since', '2h'))).toBe('a topic:x -topic:y b since:2h');
});
