import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Clock } from '../kernel/clock.ts';
import { isUuid } from '../kernel/uuid.ts';
import { createJobIds } from './job-ids.ts';

/** A service's clocks: what its wall says, and what has passed since it began. */
function createClock(): Clock & { wallMs: number; passedMs: number; pass(ms: number): void } {
  const clock = {
    wallMs: Date.parse('2026-03-01T00:00:00Z'),
    passedMs: 5000.25,
    now: () => new Date(clock.wallMs),
    monotonicMs: () => clock.passedMs,
    pass(ms: number) {
      clock.wallMs += ms;
      clock.passedMs += ms;
    },
  };
  return clock;
}

/** As the database makes it, in the last microsecond of the millisecond. */
function idAt(ms: number): string {
  const time = ms.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7fff-bfff-ffffffffffff`;
}

function msOf(id: string | null): number {
  return Number.parseInt((id ?? '').replaceAll('-', '').slice(0, 12), 16);
}

describe('ids of jobs', () => {
  const databaseMs = Date.parse('2026-07-01T12:00:00Z');

  test('none is made before the database has said what time it is', () => {
    assert.equal(createJobIds(createClock()).next(), null);
  });

  test('have the time of the database, and grow from the one that said it', () => {
    const clock = createClock();
    const ids = createJobIds(clock);
    ids.ask().note(idAt(databaseMs));
    const all = [idAt(databaseMs)];
    for (let i = 0; i < 10_000; i += 1) {
      const id = ids.next();
      assert.ok(id !== null && isUuid(id));
      all.push(id);
      clock.pass(0.01);
    }
    assert.deepEqual(all, all.toSorted());
    assert.equal(new Set(all).size, all.length);
    assert.ok(Math.abs(msOf(all.at(-1) ?? '') - databaseMs - 100) <= 2);
  });

  test('are made for a minute, and then the database is asked again', () => {
    const clock = createClock();
    const ids = createJobIds(clock);
    ids.ask().note(idAt(databaseMs));
    clock.pass(60_000);
    assert.equal(msOf(ids.next()), databaseMs + 60_001);
    clock.pass(1);
    assert.equal(ids.next(), null);
    ids.ask().note(idAt(databaseMs + 90_000));
    assert.equal(msOf(ids.next()), databaseMs + 90_001);
  });

  test('are not made where the clock was set or the machine has slept', () => {
    for (const jumpMs of [3_600_000, -3_600_000]) {
      const clock = createClock();
      const ids = createJobIds(clock);
      ids.ask().note(idAt(databaseMs));
      clock.wallMs += jumpMs;
      assert.equal(ids.next(), null);
      ids.ask().note(idAt(databaseMs + 10));
      assert.equal(msOf(ids.next()), databaseMs + 11);
    }
  });

  test('are not set by an answer that was long on its way, nor by an id that says no time', () => {
    const clock = createClock();
    const ids = createJobIds(clock);
    ids.ask().note('f47ac10b-58cc-4372-a567-0e02b2c3d479');
    ids.ask().note(undefined as never);
    assert.equal(ids.next(), null);
    ids.ask().note(idAt(databaseMs));
    const late = ids.ask();
    clock.pass(1001);
    late.note(idAt(databaseMs - 120_000));
    assert.equal(msOf(ids.next()), databaseMs + 1002);
  });

  test('never go back by less than a second, but follow a database whose clock is set back by more', () => {
    const ids = createJobIds(createClock());
    ids.ask().note(idAt(databaseMs));
    const before = ids.next();
    ids.ask().note(idAt(databaseMs - 500));
    const after = ids.next();
    assert.ok((after ?? '') > (before ?? ''));
    ids.ask().note(idAt(databaseMs - 3_600_000));
    assert.equal(msOf(ids.next()), databaseMs - 3_600_000 + 1);
  });
});
