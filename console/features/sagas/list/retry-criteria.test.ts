import { expect, test } from 'vitest';
import { selectAllMatching, nothingSelected, type Selection } from '../../../lib/selection/selection.ts';
import { maxNamed, retryCriteriaOf } from './retry-criteria.ts';

const frozenAt = '2026-01-31T12:00:00.000Z';
const matching = (filter: string) => retryCriteriaOf(selectAllMatching(filter, frozenAt));

test('sagas that were chosen one by one are named', () => {
  expect(retryCriteriaOf({ kind: 'some', ids: new Set(['a', 'b']) })).toEqual({ saga_ids: ['a', 'b'] });
  const many = new Set(Array.from({ length: maxNamed + 1 }, (_, i) => String(i)));
  expect(retryCriteriaOf({ kind: 'some', ids: many })).toBeNull();
  expect(retryCriteriaOf(nothingSelected)).toBeNull();
});

test('all that match are those that were stuck when they were selected', () => {
  expect(matching('')).toEqual({ stuck_to: frozenAt });
  expect(matching('is:stuck workflow:buy step:charge')).toEqual({
    stuck_to: frozenAt,
    workflow_name: 'buy',
    step: 'charge',
  });
  expect(matching('since:2h until:2026-01-31')).toEqual({
    stuck_to: frozenAt,
    created_from: '2026-01-31T10:00:00.000Z',
    created_to: '2026-01-31T00:00:00.000Z',
  });
});

test('what the API cannot be asked is not asked for something else', () => {
  for (const filter of ['status:RUNNING', 'correlation:o-1', '-is:stuck', 'key:k', 'is:stuck service:shop'])
    expect(matching(filter), filter).toBeNull();
  const without: Selection = { kind: 'allMatching', filter: '', frozenAt, minus: new Set(['a']) };
  expect(retryCriteriaOf(without)).toBeNull();
});
