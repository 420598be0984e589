import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { collapsedMs, inRunOrder, layTimeline, type LoggedAttempt } from './timeline.ts';

const now = 10_000_000;

/** Any log, also one of clocks that disagree and one that no saga would write. */
const logs = fc
  .uniqueArray(
    fc.record({
      step: fc.nat(6),
      op: fc.constantFrom('EXECUTE' as const, 'COMPENSATE' as const),
      attempt: fc.integer({ min: 1, max: 20 }),
      startedAt: fc.integer({ min: now - 5_000_000, max: now }),
      tookMs: fc.option(fc.nat(100_000)),
    }),
    { selector: ({ step, op, attempt }) => `${step} ${op} ${attempt}`, maxLength: 60 },
  )
  .map((rows) =>
    rows.map(({ tookMs, ...row }, i): LoggedAttempt => ({
      ...row,
      id: String(i),
      endedAt: tookMs === null ? null : row.startedAt + tookMs,
    })),
  );

const lay = (log: readonly LoggedAttempt[], width = 800) => layTimeline(log, { stepCount: 3, now, width });

describe('the picture of a saga', () => {
  test('draws every row of the log once, on the lane of its step, inside the picture', () => {
    fc.assert(
      fc.property(logs, fc.integer({ min: 200, max: 2000 }), (log, width) => {
        const { bars, bands, width: whole, height } = lay(log, width);
        expect(bars.map(({ id }) => id).toSorted()).toEqual(log.map(({ id }) => id).toSorted());
        expect(bars.map(({ order }) => order)).toEqual(bars.map((_, i) => i + 1));
        for (const { lanes } of bands)
          for (const lane of lanes)
            for (const bar of lane.bars) {
              const row = log.find(({ id }) => id === bar.id);
              expect([row?.step, row?.op, bar.y]).toEqual([lane.step, lane.op, lane.y]);
            }
        for (const { x, width: wide, y } of bars) {
          expect(wide).toBeGreaterThan(0);
          expect(x).toBeGreaterThanOrEqual(0);
          expect(x + wide).toBeLessThanOrEqual(whole + 0.001);
          expect(y).toBeLessThan(height);
        }
      }),
    );
  });

  test('never draws an undo before its action, or a bar before the end of the one before it', () => {
    fc.assert(
      fc.property(logs, (log) => {
        const { bars, turn } = lay(log);
        bars.slice(1).forEach((bar, i) => {
          const before = bars[i];
          expect(bar.x).toBeGreaterThanOrEqual((before?.x ?? 0) + (before?.width ?? 0));
        });
        const opOf = new Map(log.map(({ id, op }) => [id, op]));
        for (const { id, x } of bars)
          if (turn === null) expect(opOf.get(id)).toBe('EXECUTE');
          else expect(x > turn.x).toBe(opOf.get(id) === 'COMPENSATE');
      }),
    );
  });

  test('collapses every pause of more than three seconds, and no other', () => {
    const at = (order: number, startedAt: number): LoggedAttempt => ({
      id: String(order),
      step: 0,
      op: 'EXECUTE',
      attempt: order,
      startedAt,
      endedAt: startedAt + 100,
    });
    const second = 100 + collapsedMs;
    const third = second + 100 + collapsedMs + 1;
    const { pauses } = lay([at(1, 0), at(2, second), at(3, third), at(4, third + 3_600_100)]);
    expect(pauses.map(({ ms }) => ms)).toEqual([collapsedMs + 1, 3_600_000]);
    fc.assert(
      fc.property(logs, (log) => {
        for (const { ms } of lay(log).pauses) expect(ms).toBeGreaterThan(collapsedMs);
      }),
    );
  });

  test('has a lane for each step that was not started, and one for undos only where there are any', () => {
    const { bands, bars, turn, height } = lay([]);
    expect(bands.map(({ lanes }) => lanes.map(({ op }) => op))).toEqual([
      ['EXECUTE'],
      ['EXECUTE'],
      ['EXECUTE'],
    ]);
    expect([bars, turn, height]).toEqual([[], null, 84]);
  });

  test('gives a longer attempt a wider bar', () => {
    const row = (attempt: number, tookMs: number): LoggedAttempt => ({
      id: String(attempt),
      step: 0,
      op: 'EXECUTE',
      attempt,
      startedAt: now - 100_000 + attempt,
      endedAt: now - 100_000 + attempt + tookMs,
    });
    const [short, long] = lay([row(1, 80), row(2, 30_000)]).bars;
    expect(long?.width).toBeGreaterThan(5 * (short?.width ?? 0));
  });

  test('orders what ran by its causes, not by its times', () => {
    const rows = [
      { step: 0, op: 'COMPENSATE', attempt: 1 },
      { step: 1, op: 'COMPENSATE', attempt: 2 },
      { step: 1, op: 'COMPENSATE', attempt: 1 },
      { step: 1, op: 'EXECUTE', attempt: 1 },
      { step: 0, op: 'EXECUTE', attempt: 1 },
    ] as const;
    expect(inRunOrder(rows).map(({ step, op, attempt }) => `${op[0]}${step}.${attempt}`)).toEqual([
      'E0.1',
      'E1.1',
      'C1.1',
      'C1.2',
      'C0.1',
    ]);
  });
});
