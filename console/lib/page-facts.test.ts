import { expect, test } from 'vitest';
import { readPageFacts } from './page-facts.ts';

test('facts that the page does not have are empty', () => {
  document.body.innerHTML = '<script type="application/json" id="page-facts">{"prefix":"/ops"}</script>';
  expect(readPageFacts(document)).toEqual({ prefix: '/ops', environment: '', login: null });
  document.body.innerHTML = '';
  expect(readPageFacts(document).prefix).toBe('');
});
