import { expect, test } from 'vitest';
import type { FoundItem } from '../../lib/server-shapes.ts';
import { groupsOf, type Sources } from './entries.ts';
import { en } from './texts/en.ts';

const button = document.createElement('button');
const found: FoundItem = {
  slice: 'dlq',
  kind: 'message',
  id: '0197',
  title: 'orders.v1',
  status: 'DEAD',
  link: '/dlq/messages/0197',
  at: '2026-11-19T12:00:00Z',
  archived: false,
  by: 'key',
};
const sources: Sources = {
  found: [],
  actions: [
    { label: 'Plan redrive', keys: 'r', disabledReason: null, element: button },
    { label: 'Discard…', keys: null, disabledReason: 'not allowed', element: button },
  ],
  pages: [{ to: '/jobs/list', label: 'Jobs › Jobs', keys: 'g j' }],
  recent: [{ to: '/sagas/1', label: 'saga 1', detail: 'place-order' }],
};
const labels = (text: string, more: Partial<Sources> = {}) =>
  groupsOf(text, { ...sources, ...more }, en).map(({ value, items }) => [
    value,
    items.map(({ label }) => label),
  ]);

test('without a text it offers where somebody was, what the page can do, and all pages', () => {
  expect(labels('')).toEqual([
    ['Recent', ['saga 1']],
    ['On this page', ['Plan redrive', 'Discard…']],
    ['Go to', ['Jobs › Jobs']],
  ]);
});

test('all words have to be there, in any order; what the server found is first', () => {
  expect(labels('redrive PLAN')).toEqual([['On this page', ['Plan redrive']]]);
  expect(labels('C-17', { found: [found] })).toEqual([['Found', ['message 0197']]]);
  expect(groupsOf('C-17', { ...sources, found: [found] }, en)[0]?.items[0]).toMatchObject({
    detail: 'orders.v1 · by its key',
    status: 'DEAD',
    does: { kind: 'go', to: '/dlq/messages/0197' },
  });
});

test('what is forbidden is there, with the reason', () => {
  expect(groupsOf('discard', sources, en)[0]?.items[0]).toMatchObject({
    disabledReason: 'not allowed',
    detail: 'not allowed',
  });
});
