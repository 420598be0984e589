import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { addUnread, nothingUnread } from './live-events.ts';
import { asLoaded, mergeAnswer, mergeRows, shownRows, type Answer, type LiveRows } from './live-rows.ts';

type Row = Readonly<{ id: string; status: string }>;
const idOf = ({ id }: Row): string => id;

const ids = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'), { maxLength: 8 });
const statuses = fc.constantFrom('DEAD', 'PENDING');
const rows = ids.chain((some) =>
  fc.tuple(...some.map((id) => statuses.map((status): Row => ({ id, status })))),
);
const answers: fc.Arbitrary<Answer<Row>> = fc.record({ rows, isWhole: fc.boolean() });

const after = (shown: readonly Row[], all: readonly Answer<Row>[]): LiveRows<Row> =>
  all.reduce<LiveRows<Row>>((live, answer) => mergeAnswer(live, shown, answer, idOf), asLoaded());

test('whatever answers came before, the last whole one decides', () => {
  fc.assert(
    fc.property(rows, fc.array(answers, { maxLength: 5 }), rows, (shown, before, last) => {
      const answer = { rows: last, isWhole: true };
      const all = after(shown, [...before, answer]);
      const alone = after(shown, [answer]);
      expect([...all.gone].toSorted()).toEqual([...alone.gone].toSorted());
      expect([...all.fresh].toSorted()).toEqual([...alone.fresh].toSorted());
      const live = ({ gone }: LiveRows<Row>, shownNow: readonly Row[]) =>
        shownNow.filter(({ id }) => !gone.has(id));
      expect(live(all, shownRows(shown, all, idOf))).toEqual(live(alone, shownRows(shown, alone, idOf)));
    }),
  );
});

test('no answer adds, removes or moves a row', () => {
  fc.assert(
    fc.property(rows, fc.array(answers, { maxLength: 5 }), (shown, all) => {
      expect(shownRows(shown, after(shown, all), idOf).map(idOf)).toEqual(shown.map(idOf));
    }),
  );
});

test('a row is another object if and only if its content is different, and so is the state', () => {
  fc.assert(
    fc.property(rows, answers, (shown, answer) => {
      const once = after(shown, [answer]);
      const [first, again] = [
        shownRows(shown, once, idOf),
        mergeAnswer(once, shown, structuredClone(answer), idOf),
      ];
      expect(again).toBe(once);
      for (const [i, row] of shown.entries()) {
        const now = first[i];
        expect(now === row).toBe(JSON.stringify(now) === JSON.stringify(row));
      }
    }),
  );
});

test('a row that changes back is the one that was loaded', () => {
  const shown: readonly Row[] = [{ id: 'a', status: 'DEAD' }];
  const pending = mergeAnswer(
    asLoaded<Row>(),
    shown,
    { rows: [{ id: 'a', status: 'PENDING' }], isWhole: true },
    idOf,
  );
  expect(shownRows(shown, pending, idOf)[0]?.status).toBe('PENDING');
  const back = mergeAnswer(pending, shown, { rows: [{ id: 'a', status: 'DEAD' }], isWhole: true }, idOf);
  expect(shownRows(shown, back, idOf)[0]).toBe(shown[0]);
});

test('rows beyond the end of an answer are not known to be gone; those before it are', () => {
  const shown = ['a', 'b', 'c', 'd'].map((id): Row => ({ id, status: 'DEAD' }));
  const now = (...some: readonly string[]): readonly Row[] =>
    shown.filter(({ id }) => some.includes(id)).concat({ id: 'z', status: 'DEAD' });
  const live = after(shown, [{ rows: now('a', 'c'), isWhole: false }]);
  expect([...live.gone]).toEqual(['b']);
  expect([...live.fresh]).toEqual(['z']);
  expect([...after(shown, [{ rows: now('a', 'c'), isWhole: true }]).gone]).toEqual(['b', 'd']);
});

test('rows that were read again have their values, and what was deleted is gone', () => {
  const shown = ['a', 'b'].map((id): Row => ({ id, status: 'DEAD' }));
  const live = mergeRows(
    asLoaded<Row>(),
    shown,
    { ids: ['a', 'b'], rows: [{ id: 'b', status: 'RESOLVED' }] },
    idOf,
  );
  expect([...live.gone]).toEqual(['a']);
  expect(shownRows(shown, live, idOf)[1]?.status).toBe('RESOLVED');
});

test('changes give the same whatever their order', () => {
  const change = fc.record({ ids, many: fc.boolean() });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 6 }), (all) => {
      const [some, other] = [all, all.toReversed()].map((order) => order.reduce(addUnread, nothingUnread));
      expect(some?.many).toBe(other?.many);
      expect([...(some?.ids ?? [])].toSorted()).toEqual([...(other?.ids ?? [])].toSorted());
    }),
  );
});
