import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Redrive } from '../../../lib/server-shapes.ts';
import { keepIds, readKeptIds } from '../../../lib/kept-ids.ts';
import { emptyPlan, findPlanProblems, planBody, readRate, readStages } from './plan-form.ts';
import { countIds, printRedriveFilter, readRedriveFilter } from './redrive-filter.ts';
import { cameBackPercent, outcomeCounts, rampSteps, sendingMs, watchingMs } from './redrive-numbers.ts';

const noCounts: Redrive['counts'] = {
  selected: 0,
  excluded: 0,
  waiting: 0,
  in_flight: 0,
  quiet: 0,
  published: 0,
  not_published: 0,
  came_back: 0,
  failed: 0,
  unknown: 0,
  skipped: 0,
  cancelled: 0,
  applied: 0,
};

describe('the filter of a redrive', () => {
  const word = fc.stringMatching(/^[a-z0-9.]{1,12}$/);
  const filters = fc
    .record(
      {
        topic: word,
        error_class: word,
        consumer_group: fc.string({ minLength: 1, maxLength: 12 }).filter((text) => text.trim() === text),
        key: fc.string({ minLength: 1, maxLength: 12 }),
        fingerprint: word,
        status: fc.uniqueArray(fc.constantFrom('PENDING', 'RETRYING', 'DEAD', 'RESOLVED'), { minLength: 1 }),
        text: fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join(' ')),
      },
      { requiredKeys: [] },
    )
    .map((filter) => ({ ...filter }));

  test('is the same after it was printed and read again', () => {
    fc.assert(
      fc.property(filters, (filter) => {
        expect(readRedriveFilter(printRedriveFilter(filter), 0)).toEqual({ isValid: true, filter });
      }),
    );
  });

  test('takes ages and refuses what a redrive cannot select by', () => {
    expect(readRedriveFilter('since:1h', 7_200_000)).toEqual({
      isValid: true,
      filter: { since: '1970-01-01T01:00:00.000Z' },
    });
    expect(readRedriveFilter('-topic:a', 0).isValid).toBe(false);
    expect(readRedriveFilter('colour:red', 0).isValid).toBe(false);
    expect(countIds({ ids: ['a', 'b'] })).toBe(2);
  });
});

describe('the form', () => {
  const form = { ...emptyPlan, reason: 'fixed' };

  test('needs a reason, and sends what the kind takes', () => {
    expect(findPlanProblems(emptyPlan)).toEqual(['reason']);
    expect(findPlanProblems(form)).toEqual([]);
    expect(planBody(form, { topic: 'a' })).toEqual({
      kind: 'retry',
      filter: { topic: 'a' },
      reason: 'fixed',
      rate_per_second: 50,
      order: 'key',
      reopen: false,
      canary: { stages: [1, 5, 25], watch_seconds: 120, stop_percent: 10 },
    });
    expect(Object.keys(planBody({ ...form, kind: 'delete' }, {}))).toEqual([
      'kind',
      'filter',
      'reason',
      'rate_per_second',
    ]);
  });

  test('refuses what the server would refuse', () => {
    expect(readStages('1, 5 25')).toEqual([1, 5, 25]);
    for (const wrong of ['', '5,1', '1,1', '0,1', '1e3', '-1', '1,2000000', '1.5'])
      expect(readStages(wrong), wrong).toBeNull();
    expect(readRate('')).toBeNull();
    expect(readRate('0.5')).toBe(0.5);
    for (const wrong of ['0', '1e9', 'fast', '-1', '1000000']) expect(readRate(wrong), wrong).toBeUndefined();
    expect(findPlanProblems({ ...form, watchSeconds: '0', stopPercent: '100', stages: 'x' })).toEqual([
      'stages',
      'watchSeconds',
      'stopPercent',
    ]);
    expect(findPlanProblems({ ...form, hasCanary: false, stages: 'x' })).toEqual([]);
  });
});

describe('the figures', () => {
  const anyCounts = fc
    .array(fc.nat(1_000_000), { minLength: 11, maxLength: 11 })
    .map(([waiting = 0, in_flight = 0, quiet = 0, published = 0, ...rest]) => {
      const [
        not_published = 0,
        came_back = 0,
        failed = 0,
        unknown = 0,
        skipped = 0,
        cancelled = 0,
        applied = 0,
      ] = rest;
      const parts = {
        waiting,
        in_flight,
        quiet,
        published,
        not_published,
        came_back,
        failed,
        unknown,
        skipped,
        cancelled,
        applied,
      };
      return { ...parts, selected: Object.values(parts).reduce((sum, one) => sum + one, 0), excluded: 3 };
    });

  test('of the meter add up to what was selected', () => {
    fc.assert(
      fc.property(anyCounts, fc.constantFrom('retry', 'delete'), (counts, kind) => {
        const sum = outcomeCounts({ kind, counts }).reduce((all, { count }) => all + count, 0);
        expect(sum).toBe(counts.selected);
      }),
    );
  });

  test('of what came back are a share of what was sent', () => {
    expect(cameBackPercent({ counts: noCounts })).toBeNull();
    expect(cameBackPercent({ counts: { ...noCounts, published: 6, quiet: 3, came_back: 1 } })).toBe(10);
  });

  test('of the ramp show one stage at work, and all of them done at the end', () => {
    const options = {
      rate_per_second: null,
      order: 'key',
      canary: { stages: [1, 5], watch_seconds: 60, stop_percent: 10 },
    } as const;
    const at = { options, stage: 2, watch_until: '2026-11-19T12:00:00Z', state: 'running' } as const;
    expect(rampSteps(at)).toEqual([
      { bound: 1, state: 'done' },
      { bound: 5, state: 'watching' },
      { bound: null, state: 'waiting' },
    ]);
    expect(rampSteps({ ...at, watch_until: null })[1]?.state).toBe('sending');
    expect(
      rampSteps({ ...at, stage: null, state: 'planned' }).every(({ state }) => state === 'waiting'),
    ).toBe(true);
    expect(rampSteps({ ...at, stage: 3, state: 'finished' }).every(({ state }) => state === 'done')).toBe(
      true,
    );
  });

  test('of the estimate count only windows that are needed', () => {
    const canary = { stages: [1, 5, 25], watch_seconds: 60, stop_percent: 10 };
    expect(sendingMs(100, 50)).toBe(2000);
    expect(sendingMs(100, null)).toBeNull();
    expect(watchingMs(3, canary)).toBe(120_000);
    expect(watchingMs(100, canary)).toBe(180_000);
    expect(watchingMs(100, null)).toBe(0);
  });
});

test('messages chosen in a list are found by the name that they were kept under', () => {
  expect(readKeptIds(keepIds(['a', 'b']))).toEqual(['a', 'b']);
  expect(readKeptIds('chosen-elsewhere')).toBeNull();
});
