import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadedOf } from './loaded.ts';

const whyEmpty = (rows: readonly number[]) => (rows.length === 0 ? ('filter' as const) : null);

test('an error is never an empty list and never loses what was loaded', () => {
  const datas = fc.option(fc.array(fc.nat()), { nil: undefined });
  fc.assert(
    fc.property(datas, fc.boolean(), (data, isFetching) => {
      const error = new Error('broken');
      expect(loadedOf({ data, error, isFetching }, whyEmpty)).toEqual({
        state: 'failed',
        error,
        last: data ?? null,
      });
    }),
  );
});

test('without an answer it is loading, and without rows empty', () => {
  const query = { error: null, isFetching: true };
  expect(loadedOf({ ...query, data: undefined }, whyEmpty)).toEqual({ state: 'loading' });
  expect(loadedOf({ ...query, data: [] }, whyEmpty)).toMatchObject({ state: 'empty', reason: 'filter' });
  expect(loadedOf({ ...query, data: [1] }, whyEmpty)).toMatchObject({ state: 'rows', isRefreshing: true });
});
