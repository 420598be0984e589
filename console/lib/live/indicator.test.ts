import { expect, test } from 'vitest';
import { indicatorOf, mainHold } from './indicator.ts';

const facts = { connection: 'live', isPaused: false, hold: null, ageMs: 0 } as const;

test('what a person did is said first, then what is wrong, then what is held', () => {
  const hold = { by: 'selection', count: 14 } as const;
  expect(indicatorOf({ ...facts, isPaused: true, hold, ageMs: 60_000 })).toEqual({ state: 'paused' });
  expect(indicatorOf({ ...facts, hold, ageMs: 60_000 })).toEqual({ state: 'stale' });
  expect(indicatorOf({ ...facts, hold })).toEqual({ state: 'held', hold });
});

test('the age decides over the connection: a silent stream is not live', () => {
  expect(indicatorOf({ ...facts, ageMs: 15_000 }).state).toBe('live');
  expect(indicatorOf({ ...facts, ageMs: 15_001 }).state).toBe('stale');
  expect(indicatorOf({ ...facts, connection: 'polling' }).state).toBe('polling');
  expect(indicatorOf({ ...facts, connection: 'away' }).state).toBe('reconnecting');
  expect(indicatorOf({ ...facts, connection: 'connecting' }).state).toBe('reconnecting');
});

test('a page that has not heard the server yet connects for the first time', () => {
  expect(indicatorOf({ ...facts, ageMs: null, connection: 'connecting' }).state).toBe('connecting');
  expect(indicatorOf({ ...facts, ageMs: null, connection: 'away' }).state).toBe('reconnecting');
});

test('of several holds the selection is named', () => {
  const selection = { by: 'selection', count: 2 } as const;
  expect(mainHold([{ by: 'text' }, selection, { by: 'dialog' }])).toBe(selection);
  expect(mainHold([])).toBe(null);
});
